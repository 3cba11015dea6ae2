//! Maps and strings beside a model, without a server.
