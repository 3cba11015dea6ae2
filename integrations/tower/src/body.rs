//! Bodies of responses: from the cache, or from the service behind it.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;

/// The body of a response that has passed a [`CacheLayer`](crate::CacheLayer).
pub struct CacheBody<B: Body>(Kind<B>);

enum Kind<B: Body> {
    /// A stored body, or what is left of it.
    Whole(Bytes),
    /// A body that is not stored: what was read of it already, and the rest.
    Passed {
        read: Bytes,
        end: Option<Result<Frame<Bytes>, B::Error>>,
        rest: Option<B>,
    },
}

impl<B: Body> fmt::Debug for CacheBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.0 {
            Kind::Whole(_) => "whole",
            Kind::Passed { .. } => "passed",
        };
        f.debug_tuple("CacheBody").field(&kind).finish()
    }
}

impl<B: Body<Data = Bytes>> CacheBody<B> {
    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self(Kind::Whole(bytes))
    }

    pub(crate) fn passed(body: B) -> Self {
        Self(Kind::Passed {
            read: Bytes::new(),
            end: None,
            rest: Some(body),
        })
    }
}

/// What [`read`] made of a body.
pub(crate) enum Read<B: Body> {
    Whole(Bytes),
    /// It is too long, fails, or has trailers; it is still complete.
    Passed(CacheBody<B>),
}

/// Reads a body of at most `most_bytes` without trailers.
pub(crate) async fn read<B: Body<Data = Bytes> + Unpin>(mut body: B, most_bytes: usize) -> Read<B> {
    let passed = |read: BytesMut, end, rest| {
        Read::Passed(CacheBody(Kind::Passed {
            read: read.freeze(),
            end,
            rest,
        }))
    };
    if body.size_hint().lower() > most_bytes as u64 {
        return Read::Passed(CacheBody::passed(body));
    }
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        match frame.map(Frame::into_data) {
            Ok(Ok(data)) => bytes.extend_from_slice(&data),
            Ok(Err(trailers)) => return passed(bytes, Some(Ok(trailers)), Some(body)),
            Err(error) => return passed(bytes, Some(Err(error)), None),
        }
        if bytes.len() > most_bytes {
            return passed(bytes, None, Some(body));
        }
    }
    Read::Whole(bytes.freeze())
}

impl<B: Body<Data = Bytes> + Unpin> Body for CacheBody<B>
where
    B::Error: Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let bytes = match &mut self.0 {
            Kind::Whole(bytes) | Kind::Passed { read: bytes, .. } => std::mem::take(bytes),
        };
        if !bytes.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        match &mut self.0 {
            Kind::Whole(_) => Poll::Ready(None),
            Kind::Passed { end: end @ Some(_), .. } => Poll::Ready(end.take()),
            Kind::Passed { rest: Some(rest), .. } => Pin::new(rest).poll_frame(context),
            Kind::Passed { rest: None, .. } => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(bytes) => bytes.is_empty(),
            Kind::Passed { read, end, rest } => {
                read.is_empty() && end.is_none() && rest.as_ref().is_none_or(Body::is_end_stream)
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Passed { read, rest, .. } => {
                let rest = rest.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint);
                let read = read.len() as u64;
                let mut hint = SizeHint::new();
                hint.set_lower(read + rest.lower());
                if let Some(upper) = rest.upper() {
                    hint.set_upper(read + upper);
                }
                hint
            }
        }
    }
}
