//! Inner nodes: separators and children.
//!
//! Separators never change once a node is published; a change of structure makes a new node. Only the child pointers of a node
//! directly above the leaves are stored to in place, under the node's lock, when a leaf is replaced by its compacted self.
//!
//! ```text
//! header | children: one pointer each | heads: 8 bytes each | ends: u32 each | prefix | separators behind the prefix
//! ```
//! A head is the first eight bytes of a separator behind the common prefix, zero-padded, most significant byte first: a search
//! compares heads and looks at a separator's bytes only where heads are equal.

use std::cmp::Ordering as Order;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use super::Error;
use super::memory::{Kind, Memory, NodeHeader};
use super::sync::{AtomicBool, AtomicPtr, NodeLock};

/// Most children of an inner node.
pub(crate) const MAX_CHILDREN: usize = 128;

#[repr(C)]
pub(crate) struct Header {
    node: NodeHeader,
    children: u16,
    prefix_len: u16,
    /// 1 when the children are leaves.
    pub level: u8,
    pub lock: NodeLock,
    /// Set under the lock when a newer node has taken this one's place.
    pub obsolete: AtomicBool,
}

const CHILDREN_AT: usize = size_of::<Header>().next_multiple_of(8);
/// A pointer; more where a model checker's atomics stand in.
const CHILD_BYTES: usize = size_of::<AtomicPtr<u8>>();

/// An inner node, borrowed for as long as a guard protects it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Inner(NonNull<u8>);

/// The first eight bytes of `bytes`, zero-padded, as a number that orders as they do.
pub(crate) fn head(bytes: &[u8]) -> u64 {
    if let Some(first) = bytes.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let mut padded = [0; 8];
    padded[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(padded)
}

impl Inner {
    /// A node above `children`, separated by `separators` (one fewer, ascending).
    ///
    /// # Safety
    /// `memory` outlives the node; the children are nodes of `level - 1`.
    pub(crate) unsafe fn new(
        level: u8,
        children: &[*mut u8],
        separators: &[Vec<u8>],
        memory: &Memory,
    ) -> Result<Self, Error> {
        debug_assert_eq!(children.len(), separators.len() + 1);
        let prefix_len = match (separators.first(), separators.last()) {
            (Some(first), Some(last)) => common_prefix(first, last),
            _ => 0,
        };
        let suffix_bytes: usize = separators.iter().map(|separator| separator.len() - prefix_len).sum();
        let bytes = CHILDREN_AT + children.len() * CHILD_BYTES + separators.len() * 12 + prefix_len + suffix_bytes;
        // SAFETY: every section is written into the room it was counted for; children and heads are 8-byte aligned.
        unsafe {
            let node = memory.allocate(bytes, Kind::Inner)?;
            let header = node.cast::<Header>().as_ptr();
            (&raw mut (*header).children).write(children.len() as u16);
            (&raw mut (*header).prefix_len).write(prefix_len as u16);
            (&raw mut (*header).level).write(level);
            (&raw mut (*header).lock).write(NodeLock::new());
            (&raw mut (*header).obsolete).write(AtomicBool::new(false));
            let inner = Self(node);
            for (index, child) in children.iter().enumerate() {
                inner.child_at(index).write(AtomicPtr::new(*child));
            }
            let mut end = 0;
            for (index, separator) in separators.iter().enumerate() {
                let suffix = &separator[prefix_len..];
                inner.heads().add(index).write(head(suffix));
                inner
                    .bytes()
                    .add(prefix_len + end)
                    .copy_from_nonoverlapping(suffix.as_ptr(), suffix.len());
                end += suffix.len();
                inner.ends().add(index).write(end as u32);
            }
            if let Some(first) = separators.first() {
                inner.bytes().copy_from_nonoverlapping(first.as_ptr(), prefix_len);
            }
            Ok(inner)
        }
    }

    /// # Safety
    /// `pointer` is a live inner node's.
    pub(crate) unsafe fn from_ptr(pointer: *mut u8) -> Self {
        // SAFETY: a live node's pointer is not null.
        Self(unsafe { NonNull::new_unchecked(pointer) })
    }

    pub(crate) fn as_ptr(self) -> *mut u8 {
        self.0.as_ptr()
    }

    pub(crate) fn node(self) -> NonNull<u8> {
        self.0
    }

    pub(crate) fn header(&self) -> &Header {
        // SAFETY: a live node begins with its header.
        unsafe { self.0.cast::<Header>().as_ref() }
    }

    pub(crate) fn children(&self) -> usize {
        self.header().children as usize
    }

    fn child_at(&self, index: usize) -> *mut AtomicPtr<u8> {
        // SAFETY: the children follow the header.
        unsafe { self.0.as_ptr().add(CHILDREN_AT).cast::<AtomicPtr<u8>>().add(index) }
    }

    fn heads(&self) -> *mut u64 {
        // SAFETY: the heads follow the children.
        unsafe { self.0.as_ptr().add(CHILDREN_AT + self.children() * CHILD_BYTES).cast() }
    }

    fn ends(&self) -> *mut u32 {
        // SAFETY: the ends follow the heads, of which there is one fewer than children.
        unsafe {
            self.0
                .as_ptr()
                .add(CHILDREN_AT + self.children() * (CHILD_BYTES + 8) - 8)
                .cast()
        }
    }

    fn bytes(&self) -> *mut u8 {
        // SAFETY: the prefix and the separators follow the ends.
        unsafe {
            self.0
                .as_ptr()
                .add(CHILDREN_AT + self.children() * (CHILD_BYTES + 12) - 12)
        }
    }

    fn prefix(&self) -> &[u8] {
        // SAFETY: the prefix is immutable and within the node.
        unsafe { std::slice::from_raw_parts(self.bytes(), self.header().prefix_len as usize) }
    }

    fn suffix(&self, index: usize) -> &[u8] {
        // SAFETY: ends ascend and the last is the length of all suffixes.
        unsafe {
            let start = if index == 0 {
                0
            } else {
                self.ends().add(index - 1).read() as usize
            };
            let end = self.ends().add(index).read() as usize;
            let base = self.bytes().add(self.header().prefix_len as usize);
            std::slice::from_raw_parts(base.add(start), end - start)
        }
    }

    /// Separator `index`, whole.
    pub(crate) fn separator(&self, index: usize) -> Vec<u8> {
        [self.prefix(), self.suffix(index)].concat()
    }

    /// The child at `index`.
    #[inline]
    pub(crate) fn child(&self, index: usize) -> &AtomicPtr<u8> {
        debug_assert!(index < self.children());
        // SAFETY: the index is below the number of children.
        unsafe { &*self.child_at(index) }
    }

    /// The child whose range holds `key`: the number of separators at or below it.
    #[inline]
    pub(crate) fn search(&self, key: &[u8]) -> usize {
        self.partition(key, false)
    }

    /// The child whose range holds the greatest key below `key`: the number of separators below it.
    pub(crate) fn search_below(&self, key: &[u8]) -> usize {
        self.partition(key, true)
    }

    #[inline]
    fn partition(&self, key: &[u8], below: bool) -> usize {
        let count = self.children() - 1;
        let prefix = self.prefix();
        let suffix = if prefix.is_empty() {
            key
        } else {
            match key.strip_prefix(prefix) {
                Some(suffix) => suffix,
                None if key < prefix => return 0,
                None => return count,
            }
        };
        if count == 0 {
            return 0;
        }
        let wanted = head(suffix);
        let heads = self.heads();
        // Branchless lower bound: the first separator whose head is not below the key's.
        let mut low = 0;
        let mut size = count;
        while size > 1 {
            let half = size / 2;
            // SAFETY: low + half stays below count.
            let probe = unsafe { heads.add(low + half - 1).read() };
            low = std::hint::select_unpredictable(probe < wanted, low + half, low);
            size -= half;
        }
        // SAFETY: low is below count.
        low += usize::from(unsafe { heads.add(low).read() } < wanted);
        while low < count {
            // SAFETY: low is below count.
            if unsafe { heads.add(low).read() } != wanted {
                break;
            }
            match self.suffix(low).cmp(suffix) {
                Order::Less => low += 1,
                Order::Equal if !below => low += 1,
                _ => break,
            }
        }
        low
    }

    /// Children and separators, copied out.
    pub(crate) fn contents(&self) -> (Vec<*mut u8>, Vec<Vec<u8>>) {
        let children = (0..self.children())
            .map(|index| self.child(index).load(Ordering::Acquire))
            .collect();
        let separators = (0..self.children() - 1).map(|index| self.separator(index)).collect();
        (children, separators)
    }
}

/// Length of the common prefix of two byte strings.
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// The shortest byte string above `left` and at most `right`, which is above `left`.
pub(crate) fn separator(left: &[u8], right: &[u8]) -> Vec<u8> {
    let common = common_prefix(left, right);
    right[..right.len().min(common + 1)].to_vec()
}
