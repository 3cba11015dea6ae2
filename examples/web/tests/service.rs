//! The service, asked over the loopback: all in a bounded time.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use leafpress_example_web::options::Options;
use leafpress_example_web::server::{ServeError, serve};
use tokio::sync::oneshot;

const MOST: Duration = Duration::from_secs(20);

struct Running {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<Result<(), ServeError>>,
}

impl Running {
    fn start(options: Options) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || serve(&options, listener, async { drop(stopped.await) }));
        Self { address, stop, thread }
    }

    /// Returns the status and the body of an answer.
    fn request_raw(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect_timeout(&self.address, MOST).unwrap();
        stream.set_read_timeout(Some(MOST)).unwrap();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }

    fn get(&self, path: &str) -> String {
        let (status, body) = self.request_raw("GET", path, "");
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Returns a number of the page of statistics.
    fn stat(&self, name: &str) -> f64 {
        let page = self.get("/stats");
        let (_, rest) = page.split_once(&format!("\"{name}\":")).unwrap();
        rest.split([',', '}']).next().unwrap().parse().unwrap()
    }

    /// Returns a number of the page of metrics.
    fn metric(&self, series: &str) -> f64 {
        let page = self.get("/metrics");
        let line = page.lines().find(|line| line.starts_with(series));
        let line = line.unwrap_or_else(|| panic!("{series} is not in {page}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    fn stop(self) {
        self.stop.send(()).unwrap();
        self.thread.join().unwrap().unwrap();
    }
}

fn options(name: &str) -> Options {
    Options {
        memory_bytes: 8 << 20,
        name: name.to_owned(),
        ..Options::default()
    }
}

#[test]
fn objects_are_loaded_once_and_changed_at_once() {
    let service = Running::start(options("objects"));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert!(service.get("/object/7").contains("object 7")));
        }
    });
    assert_eq!(service.stat("backend_loads"), 1.0);
    assert_eq!(service.request_raw("PUT", "/object/7", "changed").0, 204);
    for _ in 0..2 {
        assert_eq!(service.get("/object/7"), "changed");
    }
    assert_eq!(service.request_raw("DELETE", "/object/7", "").0, 204);
    assert_eq!(service.request_raw("GET", "/object/7", "").0, 404);
    assert_eq!(service.request_raw("GET", "/object/unknown", "").0, 404);
    assert_eq!(service.metric("leafpress_cache_inserts_total{cache=\"objects\"}"), 2.0);
    assert_eq!(service.metric("leafpress_cache_removes_total{cache=\"objects\"}"), 2.0);
    assert!(service.metric("leafpress_cache_hits_total{cache=\"objects\",tier=\"memory\"}") >= 1.0);
    assert_eq!(
        service
            .request_raw("PUT", &format!("/object/{}", "k".repeat(2000)), "")
            .0,
        414
    );
    service.stop();
}

#[test]
fn the_next_start_is_warm() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        disk: Some(directory.path().join("web.cache")),
        disk_bytes: 16 << 20,
        ..options("warm")
    };
    let service = Running::start(options.clone());
    for n in 0..50 {
        let path = format!("/object/mine-{n}");
        assert_eq!(service.request_raw("PUT", &path, &format!("value {n}")).0, 204);
        assert_eq!(service.get(&path), format!("value {n}"));
    }
    // A client that asks for nothing keeps the service from nothing.
    let _idle = TcpStream::connect_timeout(&service.address, MOST).unwrap();
    service.stop();
    // Its backend knows nothing of them.
    let service = Running::start(options);
    for n in 0..50 {
        assert_eq!(service.get(&format!("/object/mine-{n}")), format!("value {n}"));
    }
    assert_eq!(service.stat("backend_loads"), 0.0);
    assert_eq!(service.stat("hit_ratio"), 1.0);
    service.stop();
}
