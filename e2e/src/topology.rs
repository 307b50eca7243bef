//! Which programs a world is made of.

/// The same case must come out the same in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Whether every hop is TLS, with certificates on both sides.
    pub tls: bool,
    /// How many gateways: clients talk to the last, supervisors to the first.
    pub gateways: usize,
}

impl Topology {
    /// One gateway, nothing encrypted.
    pub const PLAINTEXT: Self = Self {
        tls: false,
        gateways: 1,
    };

    /// One gateway, everything encrypted and authenticated.
    pub const TLS: Self = Self {
        tls: true,
        gateways: 1,
    };
}
