//! How enumerations of the protocol are written, so that every language gets good names from them:
//! the zero value is `…_UNSPECIFIED`, and every value begins with the name of its enumeration.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use prost_types::{DescriptorProto, EnumDescriptorProto, FileDescriptorProto};

use super::Finding;

/// The folder that imports start from.
const PROTO: &str = "proto";

/// Checks every `.proto` file among `files`, which are relative to `root`.
///
/// # Errors
/// If a file does not parse.
pub(super) fn check(root: &Path, files: &[PathBuf]) -> Result<Vec<Finding>> {
    let ours: Vec<_> = files
        .iter()
        .filter(|path| path.starts_with(PROTO) && path.extension().is_some_and(|e| e == "proto"))
        .map(|path| root.join(path))
        .collect();
    if ours.is_empty() {
        return Ok(Vec::new());
    }
    let set = protox::compile(&ours, [root.join(PROTO)]).context("a .proto file does not parse")?;
    let files = set
        .file
        .iter()
        .filter(|file| !file.package().starts_with("google."));
    Ok(files.flat_map(check_file).collect())
}

fn check_file(file: &FileDescriptorProto) -> Vec<Finding> {
    let path = Path::new(PROTO).join(file.name());
    let nested = file.message_type.iter().flat_map(nested_enums);
    let all = file.enum_type.iter().chain(nested);
    all.flat_map(check_enum)
        .map(|message| Finding::new(&path, 1, message))
        .collect()
}

fn nested_enums(message: &DescriptorProto) -> Vec<&EnumDescriptorProto> {
    let deeper = message.nested_type.iter().flat_map(nested_enums);
    message.enum_type.iter().chain(deeper).collect()
}

fn check_enum(declared: &EnumDescriptorProto) -> Vec<String> {
    let prefix = screaming(declared.name());
    let zero = format!("{prefix}_UNSPECIFIED");
    let mut found = Vec::new();
    let has_zero = declared
        .value
        .iter()
        .any(|value| value.number() == 0 && value.name() == zero);
    if !has_zero {
        found.push(format!("enum {}: value 0 must be {zero}", declared.name()));
    }
    for value in &declared.value {
        if !value.name().starts_with(&format!("{prefix}_")) {
            let (name, of) = (value.name(), declared.name());
            found.push(format!("enum {of}: {name} must begin with {prefix}_"));
        }
    }
    found
}

/// `RelayCloseCode` as `RELAY_CLOSE_CODE`.
fn screaming(name: &str) -> String {
    let mut screaming = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !screaming.is_empty() {
            screaming.push('_');
        }
        screaming.push(c.to_ascii_uppercase());
    }
    screaming
}

#[cfg(test)]
mod tests {
    use prost_types::EnumValueDescriptorProto;

    use super::*;

    #[track_caller]
    fn check_one(values: &[(&str, i32)], expected: &[&str]) {
        let value = |(name, number): &(&str, i32)| EnumValueDescriptorProto {
            name: Some((*name).to_owned()),
            number: Some(*number),
            options: None,
        };
        let declared = EnumDescriptorProto {
            name: Some("CloseCode".to_owned()),
            value: values.iter().map(value).collect(),
            ..EnumDescriptorProto::default()
        };
        assert_eq!(check_enum(&declared), expected);
    }

    #[test]
    fn zero_says_nothing_and_names_carry_their_enumeration() {
        check_one(
            &[("CLOSE_CODE_UNSPECIFIED", 0), ("CLOSE_CODE_CANCELLED", 1)],
            &[],
        );
        check_one(
            &[("CLOSE_CODE_NONE", 0)],
            &["enum CloseCode: value 0 must be CLOSE_CODE_UNSPECIFIED"],
        );
        check_one(
            &[("CLOSE_CODE_UNSPECIFIED", 0), ("CANCELLED", 1)],
            &["enum CloseCode: CANCELLED must begin with CLOSE_CODE_"],
        );
    }
}
