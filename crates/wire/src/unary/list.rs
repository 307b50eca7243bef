//! A request that says where to begin in two ways, under one number.

use bytes::{Buf, BufMut, Bytes};
use prost::encoding::{self, DecodeContext, WireType};
use prost::{DecodeError, Message};

use super::page::Start;

/// Asks for a page of sandboxes. Field 2 is a number of items to skip (0.0.x), or the token of a
/// page (0.1.x): its wire type tells which.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListSandboxesRequest {
    pub(crate) page_size: u32,
    pub(crate) start: Start,
    pub(crate) label_selector: String,
    pub(crate) workspace_scope: Bytes,
    pub(crate) all_workspaces: bool,
}

const PAGE_SIZE: u32 = 1;
const START: u32 = 2;
const LABEL_SELECTOR: u32 = 3;
const WORKSPACE_SCOPE: u32 = 4;
const ALL_WORKSPACES: u32 = 5;

impl Message for ListSandboxesRequest {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        if self.page_size != 0 {
            encoding::uint32::encode(PAGE_SIZE, &self.page_size, buf);
        }
        match &self.start {
            Start::First => {}
            Start::Skip(items) => encoding::uint32::encode(START, items, buf),
            Start::After(token) => encoding::string::encode(START, token, buf),
        }
        if !self.label_selector.is_empty() {
            encoding::string::encode(LABEL_SELECTOR, &self.label_selector, buf);
        }
        if !self.workspace_scope.is_empty() {
            encoding::bytes::encode(WORKSPACE_SCOPE, &self.workspace_scope, buf);
        }
        if self.all_workspaces {
            encoding::bool::encode(ALL_WORKSPACES, &self.all_workspaces, buf);
        }
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        match tag {
            PAGE_SIZE => encoding::uint32::merge(wire_type, &mut self.page_size, buf, ctx),
            START => self.merge_start(wire_type, buf, ctx),
            LABEL_SELECTOR => {
                encoding::string::merge(wire_type, &mut self.label_selector, buf, ctx)
            }
            WORKSPACE_SCOPE => {
                encoding::bytes::merge(wire_type, &mut self.workspace_scope, buf, ctx)
            }
            ALL_WORKSPACES => encoding::bool::merge(wire_type, &mut self.all_workspaces, buf, ctx),
            _ => encoding::skip_field(wire_type, tag, buf, ctx),
        }
    }

    fn encoded_len(&self) -> usize {
        let start = match &self.start {
            Start::First => 0,
            Start::Skip(items) => encoding::uint32::encoded_len(START, items),
            Start::After(token) => encoding::string::encoded_len(START, token),
        };
        let unless = |empty: bool, len: usize| if empty { 0 } else { len };
        let selector = &self.label_selector;
        let scope = &self.workspace_scope;
        unless(
            self.page_size == 0,
            encoding::uint32::encoded_len(PAGE_SIZE, &self.page_size),
        ) + start
            + unless(
                selector.is_empty(),
                encoding::string::encoded_len(LABEL_SELECTOR, selector),
            )
            + unless(
                scope.is_empty(),
                encoding::bytes::encoded_len(WORKSPACE_SCOPE, scope),
            )
            + unless(
                !self.all_workspaces,
                encoding::bool::encoded_len(ALL_WORKSPACES, &self.all_workspaces),
            )
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

impl ListSandboxesRequest {
    fn merge_start(
        &mut self,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        self.start = if wire_type == WireType::Varint {
            let mut items = 0;
            encoding::uint32::merge(wire_type, &mut items, buf, ctx)?;
            Start::Skip(items)
        } else {
            let mut token = String::new();
            encoding::string::merge(wire_type, &mut token, buf, ctx)?;
            if token.is_empty() {
                Start::First
            } else {
                Start::After(token)
            }
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_dialect_says_where_to_begin() {
        let check = |bytes: &[u8], page_size, start| {
            let request = ListSandboxesRequest::decode(bytes).unwrap();
            assert_eq!(
                (request.page_size, request.start),
                (page_size, start),
                "{bytes:?}"
            );
        };
        check(&[0x08, 100], 100, Start::First);
        check(&[0x08, 100, 0x10, 7], 100, Start::Skip(7));
        check(
            &[0x08, 100, 0x12, 2, b'g', b'w'],
            100,
            Start::After("gw".to_owned()),
        );
        check(&[0x12, 0], 0, Start::First);
        check(
            &[0x1a, 3, b'a', b'=', b'b', 0x22, 1, b'd', 0x28, 1, 0x38, 9],
            0,
            Start::First,
        );
    }

    #[test]
    fn a_request_survives() {
        for start in [Start::First, Start::Skip(9), Start::After("sbx".to_owned())] {
            let request = ListSandboxesRequest {
                page_size: 300,
                start,
                label_selector: "a=b".to_owned(),
                workspace_scope: Bytes::from_static(b"default"),
                all_workspaces: true,
            };
            let bytes = request.encode_to_vec();
            assert_eq!(bytes.len(), request.encoded_len());
            assert_eq!(ListSandboxesRequest::decode(&bytes[..]), Ok(request));
        }
    }
}
