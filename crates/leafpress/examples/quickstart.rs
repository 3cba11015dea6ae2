//! A compressed map in ten lines, and its memory.
//!
//! cargo run --release -p leafpress --example quickstart

fn main() -> Result<(), leafpress::TreeError> {
    let tree = leafpress::Tree::builder().codec("zstd:1".parse()?).build()?;

    for id in 0..100_000_u32 {
        let value = format!(
            "{{\"id\":{id},\"name\":\"user {id}\",\"plan\":\"{}\"}}",
            ["free", "team", "pro"][id as usize % 3]
        );
        tree.insert(format!("user:{id:08}").as_bytes(), value.as_bytes())?;
    }

    let value = tree.get(b"user:00000042")?.expect("it was inserted");
    println!("user 42: {}", String::from_utf8_lossy(&value));

    // Without an allocation: the closure borrows the decoded value.
    let length = tree.get_with(b"user:00000043", <[u8]>::len)?;
    println!("user 43: {length:?} bytes");

    assert!(tree.remove(b"user:00000042")?);
    assert_eq!(tree.get(b"user:00000042")?, None);

    tree.compact()?;
    let stats = tree.stats();
    println!(
        "{} records, {} bytes of keys and values, {} bytes held: {:.2} per user byte",
        stats.records,
        stats.user_bytes,
        stats.bytes_held,
        stats.held_per_user_byte()
    );
    Ok(())
}
