//! Every unary method under its path, health and reflection beside them, one answer for the rest.

use std::sync::Arc;

use prost::Message;
use tonic::body::Body;
use tonic::service::Routes;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};
use tonic_reflection::server::Builder;

use super::deadline::Deadline;
use super::{GatewayApi, open_shell, operator};
use crate::proto::DESCRIPTORS;
use crate::proto::openshell::open_shell_server::{OpenShellServer, SERVICE_NAME as OPEN_SHELL};
use crate::proto::tidegate::operator_server::{OperatorServer, SERVICE_NAME as OPERATOR};

/// The largest request; what the methods take is far smaller.
const MAX_REQUEST: usize = 1024 * 1024;

/// Builds everything that is not a byte stream or a control stream: the unary methods of both
/// services, `grpc.health.v1`, reflection, and UNIMPLEMENTED with an explanation for other paths.
pub async fn routes<A: GatewayApi + ?Sized>(api: Arc<A>) -> (Routes, HealthSwitch) {
    let health = HealthSwitch(HealthReporter::new());
    health.set_serving(true).await;
    let probes = HealthServer::new(HealthService::from_health_reporter(health.0.clone()));

    let open_shell = OpenShellServer::new(open_shell::Service(Arc::clone(&api)))
        .max_decoding_message_size(MAX_REQUEST);
    let operator =
        OperatorServer::new(operator::Service(api)).max_decoding_message_size(MAX_REQUEST);

    let mut router = reflection(Routes::default().add_service(Deadline(probes))).into_axum_router();
    for path in unary_paths(OPEN_SHELL) {
        router = router.route_service(&path, Deadline(open_shell.clone()));
    }
    for path in unary_paths(OPERATOR) {
        router = router.route_service(&path, Deadline(operator.clone()));
    }
    (Routes::from(router.fallback(unserved)).prepare(), health)
}

/// Turns what load balancers see in `grpc.health.v1`.
#[derive(Clone, Debug)]
pub struct HealthSwitch(HealthReporter);

impl HealthSwitch {
    /// Says whether new calls are welcome. Watchers are told.
    pub async fn set_serving(&self, serving: bool) {
        let status = if serving {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
        };
        for service in ["", OPEN_SHELL, OPERATOR] {
            self.0.set_service_status(service, status).await;
        }
    }
}

fn reflection(routes: Routes) -> Routes {
    let builder = || {
        Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let invalid = "the descriptors are checked in and decode";
    routes
        .add_service(builder().build_v1().expect(invalid))
        .add_service(builder().build_v1alpha().expect(invalid))
}

/// The paths of a service's methods that are not streams.
fn unary_paths(service: &str) -> Vec<String> {
    let descriptors = prost_types::FileDescriptorSet::decode(DESCRIPTORS)
        .expect("the descriptors are checked in and decode");
    let services = descriptors.file.iter().flat_map(|file| {
        let package = file.package();
        file.service
            .iter()
            .map(move |service| (format!("{package}.{}", service.name()), service))
    });
    services
        .filter(|(name, _)| name == service)
        .flat_map(|(name, service)| {
            let unary = service
                .method
                .iter()
                .filter(|m| !m.client_streaming() && !m.server_streaming());
            unary
                .map(move |method| format!("/{name}/{}", method.name()))
                .collect::<Vec<_>>()
        })
        .collect()
}

async fn unserved(path: http::Uri) -> http::Response<Body> {
    let message = format!(
        "{} is not served: this is a Tidegate gateway {}, which speaks the part of openshell.v1 \
         that opens sessions and streams",
        path.path(),
        env!("CARGO_PKG_VERSION"),
    );
    tonic::Status::unimplemented(message).into_http()
}
