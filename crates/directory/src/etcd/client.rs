//! A connection to etcd: which members, how trusted, as whom, and for how long a call may take.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tonic::{
    Code, Request, Response, Status,
    metadata::{Ascii, MetadataValue},
    transport::{Channel, ClientTlsConfig, Endpoint},
};

use super::{
    endpoints::Endpoints,
    proto::etcdserverpb::{AuthenticateRequest, auth_client::AuthClient},
};
use crate::DirectoryError;

/// How long a call may take, a second one after a renewed login included.
pub(super) const CALL_LIMIT: Duration = Duration::from_millis(1800);

/// How often an idle connection is asked whether its other end is there, and for how long it may
/// not answer: a member that stands still is left within this time for another.
const PROBE: Duration = Duration::from_secs(1);

/// Whom etcd takes us for.
#[derive(Clone)]
pub struct Credentials {
    /// The user's name.
    pub user: String,
    /// The user's password.
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// A client of one etcd. Clones share its connections.
///
/// Every call answers or fails within two seconds, and is cancel-safe: dropped, it was made or was
/// not.
#[derive(Clone, Debug)]
pub struct Client(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    channel: Channel,
    credentials: Option<Credentials>,
    token: Mutex<Option<MetadataValue<Ascii>>>,
}

impl Client {
    /// Makes a client; connections are made when they are needed. It must be called within a tokio
    /// runtime.
    ///
    /// `tls` says whom to trust, and who we are, where the members speak TLS; it is not looked at
    /// otherwise.
    ///
    /// # Errors
    ///
    /// [`DirectoryError::Unavailable`] if `tls` holds a certificate or key that cannot be used.
    pub fn new(
        endpoints: &Endpoints,
        tls: &ClientTlsConfig,
        credentials: Option<Credentials>,
    ) -> Result<Self, DirectoryError> {
        let members = endpoints.uris().map(|uri| {
            let member = Endpoint::from_shared(uri)?
                .connect_timeout(PROBE)
                .http2_keep_alive_interval(PROBE)
                .keep_alive_timeout(PROBE)
                .keep_alive_while_idle(true);
            if endpoints.is_tls() {
                member.tls_config(tls.clone())
            } else {
                Ok(member)
            }
        });
        let members = members
            .collect::<Result<Vec<_>, tonic::transport::Error>>()
            .map_err(|error| DirectoryError::Unavailable(chain(&error)))?;
        Ok(Self(Arc::new(Inner {
            channel: Channel::balance_list(members.into_iter()),
            credentials,
            token: Mutex::new(None),
        })))
    }

    /// Makes a call, in time; a login that etcd no longer accepts is renewed once.
    pub(super) async fn call<T, F>(
        &self,
        mut call: impl FnMut(Channel, Login) -> F + Send,
    ) -> Result<T, DirectoryError>
    where
        F: Future<Output = Result<Response<T>, Status>> + Send,
    {
        let attempt = async {
            let login = self.login().await?;
            match call(self.0.channel.clone(), login).await {
                Err(status) if self.is_login_over(&status) => {
                    self.forget_token();
                    call(self.0.channel.clone(), self.login().await?).await
                }
                answer => answer,
            }
        };
        match tokio::time::timeout(CALL_LIMIT, attempt).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => Err(unavailable(&status)),
            Err(_) => Err(DirectoryError::Unavailable(format!(
                "etcd did not answer within {CALL_LIMIT:?}"
            ))),
        }
    }

    fn is_login_over(&self, status: &Status) -> bool {
        self.0.credentials.is_some() && status.code() == Code::Unauthenticated
    }

    async fn login(&self) -> Result<Login, Status> {
        let Some(credentials) = &self.0.credentials else {
            return Ok(Login(None));
        };
        if let Some(token) = self.token().clone() {
            return Ok(Login(Some(token)));
        }
        let asked = AuthenticateRequest {
            name: credentials.user.clone(),
            password: credentials.password.clone(),
        };
        let mut auth = AuthClient::new(self.0.channel.clone());
        let answer = auth.authenticate(asked).await?.into_inner();
        let token = MetadataValue::try_from(answer.token)
            .map_err(|_| Status::unauthenticated("etcd's token is not text"))?;
        *self.token() = Some(token.clone());
        Ok(Login(Some(token)))
    }

    fn forget_token(&self) {
        *self.token() = None;
    }

    fn token(&self) -> std::sync::MutexGuard<'_, Option<MetadataValue<Ascii>>> {
        self.0.token.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a request carries so that etcd knows whose it is.
#[derive(Clone, Debug)]
pub(super) struct Login(Option<MetadataValue<Ascii>>);

impl Login {
    pub(super) fn request<T>(self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = self.0 {
            request.metadata_mut().insert("token", token);
        }
        request
    }
}

/// What etcd, or the way to it, says.
pub(super) fn unavailable(status: &Status) -> DirectoryError {
    let why = std::error::Error::source(status).map_or_else(
        || format!("etcd answered {:?}: {}", status.code(), status.message()),
        |source| format!("etcd cannot be reached: {}", chain(source)),
    );
    DirectoryError::Unavailable(why)
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
