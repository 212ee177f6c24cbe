//! Runs models that the command relvm compiles.  RELVM_COMMAND: the command, by default `relvm`.

use std::path::PathBuf;
use std::process::Command;

use relvm::{Executable, Model, Tensor};

fn compile(name: &str, text: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (source, output) = (folder.join(format!("{name}.relvm")), folder.join(format!("{name}.rvm")));
    std::fs::write(&source, text).unwrap();
    let command = std::env::var("RELVM_COMMAND").unwrap_or_else(|_| "relvm".to_string());
    let mut words = command.split(' ');
    let mut compiler = Command::new(words.next().unwrap());
    compiler.args(words).arg("compile").arg(source).arg("-o").arg(&output).args(["--target", "bytecode"]);
    assert!(compiler.status().unwrap().success());
    output
}

const PROGRAM: &str = "def main(x: f32[n, 2], y: i64[n]) -> (f32[n, 2], i64[n]) { return (relu(x), add(y, y)) }";

#[test]
fn a_model_runs_on_several_sizes() {
    let executable = Executable::load(compile("sizes", PROGRAM), false).unwrap();
    let mut model = Model::new(&executable, "main").unwrap();
    for rows in [1, 3] {
        let x = Tensor::new(&[rows, 2], &[[-1f32, 2.0]; 3].concat()[..2 * rows as usize]).unwrap();
        let y = Tensor::new(&[rows], &vec![21i64; rows as usize]).unwrap();
        let outputs = model.run(&[&x, &y]).unwrap();
        assert_eq!(outputs[0].shape(), [rows, 2]);
        assert_eq!(outputs[0].as_slice::<f32>().unwrap()[..2], [0.0, 2.0]);
        assert!(outputs[1].as_slice::<i64>().unwrap().iter().all(|&element| element == 42));
    }
}

#[test]
fn threads_share_an_executable_and_outputs_outlive_the_model() {
    let executable = Executable::load(compile("threads", PROGRAM), false).unwrap();
    let threads: Vec<_> = (0..3)
        .map(|number| {
            let executable = executable.clone();
            std::thread::spawn(move || {
                let mut model = Model::new(&executable, "main").unwrap();
                let x = Tensor::new(&[1, 2], &[number as f32, -1.0]).unwrap();
                let y = Tensor::new(&[1], &[number as i64]).unwrap();
                let outputs = model.run(&[&x, &y]).unwrap();
                drop((model, executable, x, y));
                outputs[1].as_slice::<i64>().unwrap()[0]
            })
        })
        .collect();
    drop(executable);
    let results: Vec<i64> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_eq!(results, [0, 2, 4]);
}

#[test]
fn errors_have_a_status_and_a_message() {
    let failed = |result: Result<Vec<Tensor>, relvm::Error>| result.err().unwrap();
    let executable = Executable::load(compile("errors", PROGRAM), false).unwrap();
    let mut model = Model::new(&executable, "main").unwrap();
    let x = Tensor::new(&[1, 2], &[0f64, 0.0]).unwrap();
    let wrong = failed(model.run(&[&x, &x]));
    assert!(wrong.message.starts_with("main: argument x: expected a tensor of rank 2 and dtype f32"), "{wrong}");
    assert_eq!(wrong.status, 1);
    assert_eq!(failed(model.run(&[&x])).status, 3);
    assert!(x.as_slice::<f32>().is_err());
    assert!(Tensor::new(&[2], &[1i8]).err().unwrap().message.contains("expected 2 elements"));
    assert!(Model::new(&executable, "mian").is_err());
    assert_eq!(Executable::from_bytes(b"no executable", false).err().unwrap().status, 10);
}

#[test]
fn empty_tensors_have_no_elements() {
    let empty = Tensor::new::<f32>(&[0, 2], &[]).unwrap();
    assert!(empty.is_empty() && empty.as_slice::<f32>().unwrap().is_empty());
    assert_eq!(Tensor::new(&[], &[1f32]).unwrap().shape(), [0i64; 0]);
}
