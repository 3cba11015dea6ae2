//! Atomic read-modify-write operations.

use crate::tree::{Tree, TreeError};
use leafpress_base::mem::room::copied;

/// What to do with a record: the result of the closure passed to [`Tree::update_with`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update<V> {
    /// Insert the key with this value, or replace its value.
    Put(V),
    /// Remove the key.
    Remove,
    /// Leave the record unchanged.
    Keep,
}

/// Converts a value into [`Update::Put`], and [`None`] into [`Update::Remove`].
impl<V> From<Option<V>> for Update<V> {
    fn from(value: Option<V>) -> Self {
        value.map_or(Self::Remove, Self::Put)
    }
}

impl Tree {
    /// Replaces, inserts or removes the key's record as determined by `update`, which is called with its value,
    /// [`None`] when absent. Returns the closure's result.
    ///
    /// Atomic for the key: the value that `update` saw was the key's value when its result was applied. No lock is held
    /// while `update` runs, so it may use the tree; if another thread has changed the value meanwhile, it is called
    /// again, so it should have no side effects. A value that changed and changed back counts as unchanged (ABA).
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
    /// As [`Tree::get`] and [`Tree::insert`]; the record is then unchanged.
    ///
    /// # Panics
    /// Panics if `update` panics; this call has then not changed the record.
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

    /// Sets the key's value to `new` if it is `expected`; returns whether it was. For both, [`None`] means that the key
    /// is absent: `compare_and_swap(key, Some(old), None)` removes.
    ///
    /// [`Tree::update_with`] retries until it succeeds.
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
    /// As [`Tree::get`] and [`Tree::insert`]; the record is then unchanged.
    pub fn compare_and_swap(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, TreeError> {
        self.core.compare_and_swap(key.as_ref(), expected, new)
    }

    /// Inserts or replaces a record, and returns the key's previous value; [`None`] when it was absent.
    /// [`Tree::insert`] does not read the value.
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
    /// As [`Tree::get`] and [`Tree::insert`]; the record is then unchanged.
    pub fn swap(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        value: &(impl AsRef<[u8]> + ?Sized),
    ) -> Result<Option<Vec<u8>>, TreeError> {
        self.core.swap(key.as_ref(), Some(value.as_ref()))
    }

    /// Removes the key and returns its value; `None` when it was absent. [`Tree::remove`] does not read the value.
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
    /// [`TreeError::OutOfMemory`] or [`TreeError::Codec`]; the record is then unchanged.
    pub fn take(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<Option<Vec<u8>>, TreeError> {
        self.core.swap(key.as_ref(), None)
    }

    /// Returns the key's value, or inserts and returns the result of `make`.
    ///
    /// Atomic for the key: until it is removed, all threads that call this get the one value that was stored first.
    /// Several of them may call `make` concurrently, once each; no lock is held meanwhile, so it may use the tree.
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
    ///
    /// # Panics
    /// Panics if `make` panics; nothing is then inserted.
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
            // Absent again if it has been removed since.
            if let Some(found) = self.get(key)? {
                return Ok(found);
            }
        }
    }

    /// Removes the records for which `keep` returns false, and returns their number. `keep` is called in key order.
    ///
    /// Atomic for each key: a record is only removed with the value that `keep` saw; if it is written meanwhile, `keep`
    /// is called again. Which records are visited is as for [`Tree::range`]. No lock is held while `keep` runs, so it
    /// may use the tree.
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
    /// As [`Tree::range`] and [`Tree::remove`]; the records visited so far have been processed.
    ///
    /// # Panics
    /// Panics if `keep` panics. The record that it was called with is then kept, and the records visited before have
    /// been processed.
    pub fn retain(&self, mut keep: impl FnMut(&[u8], &[u8]) -> bool) -> Result<u64, TreeError> {
        let mut removed = 0;
        for record in self.iter() {
            let (key, mut value) = record?;
            while !keep(&key, &value) {
                if self.core.compare_and_swap(&key, Some(&value), None)? {
                    removed += 1;
                    break;
                }
                // The record was written or removed meanwhile.
                if !self.get_into(&key, &mut value)? {
                    break;
                }
            }
        }
        Ok(removed)
    }
}
