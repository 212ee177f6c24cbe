//! Links the static library of the C runtime.  `RELVM_LIBRARY` is its path; by default, `relvm config --library` prints it.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=RELVM_LIBRARY");
    let library = env::var("RELVM_LIBRARY").unwrap_or_else(|_| from_config());
    let folder = Path::new(&library).parent().expect("RELVM_LIBRARY must be the path of librelvm.a");
    println!("cargo:rerun-if-changed={library}");
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:rustc-link-lib=static=relvm");
    for name in ["m", "dl", "pthread"] {
        println!("cargo:rustc-link-lib={name}");
    }
}

fn from_config() -> String {
    let missing = "set RELVM_LIBRARY to the path of librelvm.a, or install relvm: `relvm config --library` prints the path";
    let output = Command::new("relvm").args(["config", "--library"]).output().expect(missing);
    assert!(output.status.success(), "{missing}");
    String::from_utf8(output.stdout).expect(missing).trim().to_string()
}
