//! Writes that go by what is there: reading and writing in one atomic step.

use crate::tree::{Tree, TreeError};
use leafpress_base::mem::room::copied;

/// What becomes of a record: the answer of the closure that [`Tree::update_with`] calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update<V> {
    /// The key has this value from now on.
    Put(V),
    /// The key is not there from now on.
    Remove,
    /// All stays as it is.
    Keep,
}

/// A value is put; [`None`] removes.
impl<V> From<Option<V>> for Update<V> {
    fn from(value: Option<V>) -> Self {
        value.map_or(Self::Remove, Self::Put)
    }
}

impl Tree {
    /// Has `update` say what becomes of the key's record, from the value that it has, [`None`] when absent. Returns its answer.
    ///
    /// Atomic for the key: what `update` was shown is what the key had when its answer was carried out. No lock is held while it runs, so
    /// that it may use the tree; where another thread has changed the value meanwhile it is called again, so it should do nothing else
    /// than compute. A value that changed and changed back is taken for unchanged.
    ///
    /// ```
    /// # fn main() -> Result<(), leafpress::TreeError> {
    /// use leafpress::Tree;
    /// use leafpress::tree::Update;
    ///
    /// let tree = Tree::builder().build()?;
    /// let count = |value: &[u8]| value.try_into().map_or(0, u64::from_le_bytes);
    /// // Any number of threads may do so: none of their steps is lost.
    /// for n in 1..=3_u64 {
    ///     let now = tree.update_with("visits", |old| Update::Put((old.map_or(0, count) + 1).to_le_bytes()))?;
    ///     assert_eq!(now, Update::Put(n.to_le_bytes()));
    /// }
    /// // A value that is not there is left so.
    /// let answer = tree.update_with("nobody", |old| match old {
    ///     Some(value) => Update::Put([value, b"!"].concat()),
    ///     None => Update::Keep,
    /// })?;
    /// assert_eq!(answer, Update::Keep);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Tree::get`] and [`Tree::insert`]; the record is then as it was.
    pub fn update_with<V: AsRef<[u8]>>(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        mut update: impl FnMut(Option<&[u8]>) -> Update<V>,
    ) -> Result<Update<V>, TreeError> {
        let key = key.as_ref();
        let mut value = Vec::new();
        loop {
            let old = self.core.get_into(key, &mut value)?.then_some(value.as_slice());
            let answer = update(old);
            let new = match &answer {
                Update::Put(new) => Some(new.as_ref()),
                Update::Remove => None,
                Update::Keep => return Ok(answer),
            };
            if self.core.compare_and_swap(key, old, new)? {
                return Ok(answer);
            }
        }
    }

    /// Gives the key the value `new` if it has the value `expected`; returns whether it had. For both, [`None`] means that the key is not
    /// there: `compare_and_swap(key, Some(old), None)` removes.
    ///
    /// [`Tree::update_with`] tries until it succeeds.
    ///
    /// ```
    /// # fn main() -> Result<(), leafpress::TreeError> {
    /// let tree = leafpress::Tree::builder().build()?;
    /// assert!(tree.compare_and_swap("leader", None, Some(b"a"))?);
    /// assert!(!tree.compare_and_swap("leader", None, Some(b"b"))?);
    /// assert!(tree.compare_and_swap("leader", Some(b"a"), Some(b"b"))?);
    /// assert!(tree.compare_and_swap("leader", Some(b"b"), None)?);
    /// assert!(tree.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Tree::get`] and [`Tree::insert`]; the record is then as it was.
    pub fn compare_and_swap(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, TreeError> {
        self.core.compare_and_swap(key.as_ref(), expected, new)
    }

    /// Inserts or replaces, and returns the value that the key had; [`None`] when it was not there. [`Tree::insert`] does not read the
    /// value.
    ///
    /// ```
    /// # fn main() -> Result<(), leafpress::TreeError> {
    /// let tree = leafpress::Tree::builder().build()?;
    /// assert_eq!(tree.swap("apple", "green")?, None);
    /// assert_eq!(tree.swap("apple", "red")?.as_deref(), Some(b"green".as_slice()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Tree::get`] and [`Tree::insert`]; the record is then as it was.
    pub fn swap(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        value: &(impl AsRef<[u8]> + ?Sized),
    ) -> Result<Option<Vec<u8>>, TreeError> {
        self.core.swap(key.as_ref(), Some(value.as_ref()))
    }

    /// Removes the key and returns the value that it had; `None` when it was not there. [`Tree::remove`] does not read the value.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// tree.insert("apple", "red")?;
    /// assert_eq!(tree.take("apple")?.as_deref(), Some(b"red".as_slice()));
    /// assert_eq!(tree.take("apple")?, None);
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// [`TreeError::OutOfMemory`] or [`TreeError::Codec`]; the record is then still there.
    pub fn take(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<Option<Vec<u8>>, TreeError> {
        self.core.swap(key.as_ref(), None)
    }

    /// The key's value, or else the one that `make` gives, which is inserted.
    ///
    /// Atomic for the key: while it is not removed, all threads that call this get the one value that was stored first. Several of them
    /// may call `make` at the same time, once each; no lock is held meanwhile, so that it may use the tree.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// let number = tree.get_or_insert_with("apple", || (tree.len() as u64).to_le_bytes())?;
    /// assert_eq!(tree.get_or_insert_with("apple", || [9; 8])?, number);
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tree::get`] and [`Tree::insert`].
    pub fn get_or_insert_with<V: AsRef<[u8]>>(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        make: impl FnOnce() -> V,
    ) -> Result<Vec<u8>, TreeError> {
        let key = key.as_ref();
        if let Some(found) = self.get(key)? {
            return Ok(found);
        }
        let made = make();
        let made = made.as_ref();
        loop {
            if self.insert_if_absent(key, made)? {
                return Ok(copied(made)?);
            }
            // Nothing again where it has been removed since.
            if let Some(found) = self.get(key)? {
                return Ok(found);
            }
        }
    }

    /// Removes the records of which `keep` says false, and returns how many it removed. `keep` is called in key order.
    ///
    /// Atomic for each key: a record goes only with the value that `keep` was shown; of one that is written meanwhile it is asked again.
    /// What is said of scans holds for which records it is asked of. No lock is held while it runs, so that it may use the tree.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.extend([("apple", "red"), ("banana", "yellow"), ("cherry", "red")])?;
    /// assert_eq!(tree.retain(|_, value| value == b"red")?, 1);
    /// assert!(!tree.contains_key("banana")?);
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tree::range`] and [`Tree::remove`]; the records so far are gone or kept.
    pub fn retain(&self, mut keep: impl FnMut(&[u8], &[u8]) -> bool) -> Result<u64, TreeError> {
        let mut removed = 0;
        for record in self.iter() {
            let (key, mut value) = record?;
            while !keep(&key, &value) {
                if self.core.compare_and_swap(&key, Some(&value), None)? {
                    removed += 1;
                    break;
                }
                // It was written or removed meanwhile.
                if !self.get_into(&key, &mut value)? {
                    break;
                }
            }
        }
        Ok(removed)
    }
}
