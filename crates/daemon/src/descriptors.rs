//! Open files: every connection is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets this process open as many files as the system allows it: the usual soft limit is for
/// programs of another kind.
pub fn raise_limit() {
    let most = getrlimit(Resource::Nofile).maximum;
    let raised = Rlimit {
        current: most,
        maximum: most,
    };
    if setrlimit(Resource::Nofile, raised).is_err() {
        tracing::debug!("the limit of open files stays as it is");
    }
}
