//! A cache before a database: rows are loaded on demand, and removed when they change.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use leafpress::Cache;
use leafpress::cache::{CacheError, LoadError};
use rusqlite::{Connection, OptionalExtension, params};

const ARTICLES: u64 = 20_000;

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("database: {0}")]
    Database(#[from] rusqlite::Error),
    #[error("database: {0}")]
    Load(Arc<LoadFailure>),
    #[error(transparent)]
    Cache(#[from] CacheError),
}

/// Why a row was not loaded. One that is not there is no error of the database's, but is not kept either.
#[derive(Debug, thiserror::Error)]
enum LoadFailure {
    #[error("there is no such row")]
    NoSuchRow,
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
}

/// Articles, by number.
struct Articles {
    database: Mutex<Connection>,
    cache: Cache,
    queries: std::sync::atomic::AtomicU64,
}

impl Articles {
    fn new() -> Result<Self, Error> {
        let mut database = Connection::open_in_memory()?;
        database.execute("CREATE TABLE article (id INTEGER PRIMARY KEY, text TEXT NOT NULL)", [])?;
        let filling = database.transaction()?;
        {
            let mut insert = filling.prepare("INSERT INTO article VALUES (?1, ?2)")?;
            for id in 0..ARTICLES {
                insert.execute(params![
                    id as i64,
                    format!("Article {id} is about the number {id}. ").repeat(10)
                ])?;
            }
        }
        filling.commit()?;
        // Rows that others change, behind this program's back, are out of date for so long at most.
        let cache = Cache::builder().memory(16 << 20).default_ttl(Duration::from_secs(300));
        Ok(Self {
            database: Mutex::new(database),
            cache: cache.build()?,
            queries: 0.into(),
        })
    }

    fn with<R>(&self, query: impl FnOnce(&Connection) -> R) -> R {
        self.queries.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        query(&self.database.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn load(&self, id: u64) -> Result<String, LoadFailure> {
        let row = self.with(|database| {
            let mut select = database.prepare_cached("SELECT text FROM article WHERE id = ?1")?;
            select.query_row([id as i64], |row| row.get(0)).optional()
        });
        row?.ok_or(LoadFailure::NoSuchRow)
    }

    /// Returns the article, from the cache or the database, which is asked once however many threads want it.
    fn get(&self, id: u64) -> Result<Option<String>, Error> {
        match self.cache.try_get_or_insert_with(&key(id), || self.load(id)) {
            Ok(text) => Ok(Some(String::from_utf8_lossy(&text).into_owned())),
            Err(LoadError::Load(failure)) if matches!(*failure, LoadFailure::NoSuchRow) => Ok(None),
            Err(LoadError::Load(failure)) => Err(Error::Load(failure)),
            Err(LoadError::Cache(error)) => Err(error.into()),
        }
    }

    /// Changes the row, then removes it from the cache: a concurrent load returns the old or the new row, and its
    /// result is not kept.
    fn update(&self, id: u64, text: &str) -> Result<(), Error> {
        self.with(|database| database.execute("UPDATE article SET text = ?2 WHERE id = ?1", params![id as i64, text]))?;
        self.cache.remove(&key(id))?;
        Ok(())
    }
}

fn key(id: u64) -> String {
    format!("article:{id}")
}

fn main() -> Result<(), Error> {
    let articles = Articles::new()?;
    // Twice: the second time from the cache.
    for _ in 0..2 {
        let began = Instant::now();
        thread::scope(|scope| {
            let threads = [0, 1, 2, 3].map(|_| {
                scope.spawn(|| (0..ARTICLES).try_for_each(|id| articles.get(id).map(|text| assert!(text.is_some()))))
            });
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().unwrap_or(Ok(())))
        })?;
        let queries = articles.queries.load(std::sync::atomic::Ordering::Relaxed);
        println!(
            "{} reads by four threads in {:.0?}; {queries} queries so far",
            4 * ARTICLES,
            began.elapsed()
        );
        assert_eq!(queries, ARTICLES);
    }
    articles.update(17, "changed")?;
    assert_eq!(articles.get(17)?.as_deref(), Some("changed"));
    assert_eq!(articles.get(ARTICLES)?, None);
    let stats = articles.cache.stats();
    println!(
        "{:.1}% hits; {} bytes of keys and values in {} bytes of memory",
        stats.hit_ratio() * 100.0,
        stats.user_bytes,
        stats.bytes_held
    );
    Ok(())
}
