use leafpress::store::MemoryStore;

use super::*;

fn memory(pages: u64) -> Arc<dyn PageStore> {
    Arc::new(MemoryStore::from_pages((0..pages).map(|page| vec![page as u8; 600])).unwrap())
}

fn writable(base: &Arc<dyn PageStore>, pages: u64) -> View {
    View::copy_on_write(Arc::clone(base), pages, Box::new(MemoryStore::new(600).unwrap()))
}

fn read(store: &dyn PageStore, page: PageId) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; store.page_bytes(page)?];
    store.read(page, &mut bytes).map(|()| bytes)
}

/// The first byte of each page, or none, alone and in a batch.
fn firsts(view: &View, pages: u64) -> Vec<Option<u8>> {
    let alone: Vec<_> = (0..pages)
        .map(|page| read(view, page).ok().map(|bytes| bytes[0]))
        .collect();
    let mut buffers = vec![[0_u8; 600]; pages as usize];
    let mut reads: Vec<_> = (0..pages)
        .zip(&mut buffers)
        .map(|(page, into)| PageRead {
            page,
            into,
            result: Ok(()),
        })
        .collect();
    view.read_batch(&mut reads);
    let batch: Vec<_> = reads
        .iter()
        .map(|read| read.result.is_ok().then(|| read.into[0]))
        .collect();
    assert_eq!(alone, batch);
    alone
}

#[test]
fn changes_are_seen_and_the_base_stays() {
    let base = memory(4);
    let view = writable(&base, 4);
    assert_eq!(firsts(&view, 4), [Some(0), Some(1), Some(2), Some(3)]);
    view.write(1, &[77; 600]).unwrap();
    view.remove(2).unwrap();
    assert_eq!(firsts(&view, 4), [Some(0), Some(77), None, Some(3)]);
    assert_eq!(read(&view, 2).unwrap_err().kind(), io::ErrorKind::NotFound);
    view.write(2, &[88; 600]).unwrap();
    view.remove(1).unwrap();
    view.remove(1).unwrap();
    assert_eq!(firsts(&view, 4), [Some(0), None, Some(88), Some(3)]);
    view.sync().unwrap();
    for page in 0..4 {
        assert_eq!(read(&base, page).unwrap()[0], page as u8, "the base stays as it was");
    }
}

#[test]
fn only_the_first_pages_are_there() {
    let base = memory(4);
    for view in [View::read_only(Arc::clone(&base), 2), writable(&base, 2)] {
        assert_eq!(view.len(), 2);
        assert_eq!(firsts(&view, 4), [Some(0), Some(1), None, None]);
        assert!(view.write(3, &[1; 600]).is_err());
    }
}

#[test]
fn a_view_to_read_refuses_writes() {
    let view = View::read_only(memory(2), 2);
    assert_eq!(
        view.write(0, &[1; 600]).unwrap_err().kind(),
        io::ErrorKind::PermissionDenied
    );
    assert_eq!(view.remove(0).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    assert_eq!(firsts(&view, 2), [Some(0), Some(1)]);
}
