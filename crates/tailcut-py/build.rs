//! Sets what the extension reports of its own build in `run.json`, and embeds the experiments that
//! come with it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    // Cargo does not report a custom profile's name. It is part of the path:
    // target/PROFILE/build/PACKAGE-HASH/out.
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let profile = out.ancestors().nth(3).and_then(Path::file_name);
    let profile = profile.map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    // The directory of the profile `dev` has another name.
    let profile = if profile == "debug" { "dev" } else { &profile };
    let compiler = Command::new(env::var("RUSTC").unwrap_or_default()).arg("--version").output();
    let compiler = compiler.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    println!("cargo::rustc-env=TAILCUT_PROFILE={profile}");
    println!("cargo::rustc-env=TAILCUT_RUSTC={}", compiler.unwrap_or_default());
    println!("cargo::rerun-if-changed=build.rs");

    let root = fs::canonicalize("../../experiments")?;
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files = vec![];
    collect(&root, &mut files)?;
    files.sort();
    let (claims, experiments): (Vec<_>, Vec<_>) =
        files.iter().partition(|file| file.file_name().is_some_and(|name| name == CLAIMS));
    fs::write(
        out.join("experiments.rs"),
        table(&experiments, |file| {
            let name = file.strip_prefix(&root).unwrap_or(file).with_extension("");
            name.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
        }),
    )?;
    fs::write(
        out.join("claims.rs"),
        table(&claims, |file| {
            let paper = file.parent().and_then(Path::file_name);
            paper.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
        }),
    )?;
    let scorecard = root.join("papers/scorecard.json");
    fs::write(out.join("scorecard.rs"), format!("include_str!({scorecard:?})\n"))
}

/// The file of a paper's claims, which lies beside its experiments but is not one.
const CLAIMS: &str = "claims.toml";

/// Returns Rust source of a table with each file's name and text.
fn table(files: &[&PathBuf], name: impl Fn(&Path) -> String) -> String {
    let entries =
        files.iter().map(|file| format!("    ({:?}, include_str!({file:?})),\n", name(file)));
    format!("&[\n{}]\n", entries.collect::<String>())
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    Ok(())
}
