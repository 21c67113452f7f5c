//! Run identifiers. They depend on what a run does, not on its name or the location of its files.

use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use super::{FileUse, RESULTS_VERSION};
use crate::sections::Config;

/// Returns the identifier of a run: the SHA-256 of the canonical JSON of all that decides its
/// result.
pub fn run_id(config: &Config, seed: u64, files: &[FileUse]) -> String {
    let mut config = serde_json::to_value(config).expect("a configuration is plain data");
    for section in ["topology", "traffic"] {
        content_for_path(&mut config[section], files);
    }
    let identity = json!({ "results": RESULTS_VERSION, "seed": seed, "config": config });
    hex(&Sha256::digest(canonical(&identity)))
}

/// Replaces the path of a file by the hash of its content, under every `file` key.
fn content_for_path(value: &mut Json, files: &[FileUse]) {
    match value {
        Json::Object(map) => {
            for (key, inner) in map.iter_mut() {
                let used = files.iter().find(|f| key == "file" && inner.as_str() == Some(&f.path));
                match used {
                    Some(file) => *inner = format!("sha256:{}", file.sha256).into(),
                    None => content_for_path(inner, files),
                }
            }
        }
        Json::Array(items) => items.iter_mut().for_each(|inner| content_for_path(inner, files)),
        _ => {}
    }
}

/// Writes JSON with sorted keys and without spaces: equal values give equal texts.
pub fn canonical(value: &Json) -> String {
    fn write(value: &Json, out: &mut String) {
        match value {
            Json::Object(map) => {
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_by_key(|entry| entry.0);
                out.push('{');
                for (i, (key, inner)) in entries.into_iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    out.push_str(&Json::from(key.as_str()).to_string());
                    out.push(':');
                    write(inner, out);
                }
                out.push('}');
            }
            Json::Array(items) => {
                out.push('[');
                for (i, inner) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    write(inner, out);
                }
                out.push(']');
            }
            plain => out.push_str(&plain.to_string()),
        }
    }
    let mut out = String::new();
    write(value, &mut out);
    out
}

/// Writes bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
