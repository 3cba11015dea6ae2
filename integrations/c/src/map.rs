//! Bodies of the functions that trees and caches have alike. They are macros, not functions over a trait, since the
//! methods of the two have the same names but no trait in common. The signatures are written out in the sections: the
//! header is made of them.

macro_rules! map {
    (get, $map:expr, $key:ident, $key_len:ident, $buffer:ident, $capacity:ident, $value_len:ident) => {{
        // SAFETY: the header requires bytes that are readable and unchanged during the call.
        let key = unsafe { $crate::given::Given::new($key, $key_len) };
        $crate::failure::call(|| {
            // SAFETY: the header requires NULL or room that is writable and unused by others during the call.
            let mut room = unsafe { $crate::given::Room::new($buffer, $capacity, $value_len)? };
            let found = $map.get_with(key.get("key")?, |value| room.fill(value))?;
            found.unwrap_or(Err($crate::failure::NOT_FOUND))
        })
    }};
    (read, $map:expr, $key:ident, $key_len:ident, $read:ident, $context:ident) => {{
        // SAFETY: the header requires bytes that are readable and unchanged during the call.
        let key = unsafe { $crate::given::Given::new($key, $key_len) };
        $crate::failure::call(|| {
            $crate::callback::given($read, "callback")?;
            // SAFETY: the header requires a function that may be called with this context.
            let show = |value: &[u8]| unsafe { $crate::callback::show_value($read, $context, value) };
            let shown = $map.get_with(key.get("key")?, show)?;
            shown.unwrap_or(Err($crate::failure::NOT_FOUND))
        })
    }};
    (get_many, $map:expr, $keys:ident, $count:ident, $read:ident, $context:ident) => {
        $crate::failure::call(|| {
            use $crate::given::{each, list};
            let map = $map;
            // SAFETY: the header requires a list of `count` items with bytes that are readable and unchanged during the
            // call.
            let keys = unsafe { each(list($keys, $count, "keys")?, "key")? };
            // SAFETY: the header requires a function that may be called with this context.
            let mut read = unsafe { $crate::callback::ShowFound::new($read, $context)? };
            map.get_many_with(&keys, |index, value| read.show(index, value))?;
            read.end()
        })
    };
    (contains_key, $map:expr, $key:ident, $key_len:ident) => {{
        // SAFETY: the header requires bytes that are readable and unchanged during the call.
        let key = unsafe { $crate::given::Given::new($key, $key_len) };
        $crate::failure::call(|| $crate::failure::found($map.contains_key(key.get("key")?)?))
    }};
    (remove, $map:expr, $key:ident, $key_len:ident) => {{
        // SAFETY: the header requires bytes that are readable and unchanged during the call.
        let key = unsafe { $crate::given::Given::new($key, $key_len) };
        $crate::failure::call(|| $crate::failure::found($map.remove(key.get("key")?)?))
    }};
    (take, $map:expr, $key:ident, $key_len:ident, $read:ident, $context:ident) => {{
        // SAFETY: the header requires bytes that are readable and unchanged during the call.
        let key = unsafe { $crate::given::Given::new($key, $key_len) };
        $crate::failure::call(|| {
            $crate::callback::given($read, "callback")?;
            let value = $map.take(key.get("key")?)?.ok_or($crate::failure::NOT_FOUND)?;
            // SAFETY: the header requires a function that may be called with this context.
            unsafe { $crate::callback::show_value($read, $context, &value) }
        })
    }};
    (swap, $map:expr, $key:ident, $key_len:ident, $value:ident, $value_len:ident, $read:ident, $context:ident) => {{
        use $crate::given::Given;
        // SAFETY: the header requires bytes that are readable and unchanged during the call.
        let (key, value) = unsafe { (Given::new($key, $key_len), Given::new($value, $value_len)) };
        $crate::failure::call(|| {
            $crate::callback::given($read, "callback")?;
            let old = $map.swap(key.get("key")?, value.get("value")?)?;
            // SAFETY: the header requires a function that may be called with this context.
            old.map_or(Ok(()), |old| unsafe {
                $crate::callback::show_value($read, $context, &old)
            })
        })
    }};
    (compare_and_swap, $map:expr, $key:ident, $key_len:ident, $expected:ident, $value:ident) => {{
        use $crate::given::{Given, optional};
        // SAFETY: the header requires bytes that are readable and unchanged during the call.
        let key = unsafe { Given::new($key, $key_len) };
        $crate::failure::call(|| {
            // SAFETY: the header requires bytes that are readable and unchanged during the call.
            let (expected, value) = unsafe { (optional($expected, "expected value")?, optional($value, "value")?) };
            match $map.compare_and_swap(key.get("key")?, expected, value)? {
                true => Ok(()),
                false => Err($crate::failure::MISMATCH),
            }
        })
    }};
    (len, $map:expr, $records:ident) => {
        $crate::failure::call(|| {
            let records = $crate::given::Out::at($records, "where to put the number of records")?;
            records.write($map.len() as u64);
            Ok(())
        })
    };
}
