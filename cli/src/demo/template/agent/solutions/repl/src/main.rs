//! The program `reckon`.

use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;

use reckon::{carets, options, repl::Repl};

fn main() -> ExitCode {
    let options = match options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("reckon: {error}");
            return ExitCode::from(2);
        }
    };
    if options.help {
        print!("{}", options::help());
        return ExitCode::SUCCESS;
    }
    let mut repl = Repl::new(options.precision);
    match options.expression {
        Some(expression) => answer(&mut repl, &expression),
        None => answer_all(&mut repl),
    }
}

/// Answers every line of standard input; fails if one of them could not be answered.
fn answer_all(repl: &mut Repl) -> ExitCode {
    let terminal = io::stdin().is_terminal();
    let mut outcome = ExitCode::SUCCESS;
    prompt(terminal);
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        if answer(repl, &line) == ExitCode::FAILURE {
            outcome = ExitCode::FAILURE;
        }
        prompt(terminal);
    }
    outcome
}

fn prompt(terminal: bool) {
    if terminal {
        print!("> ");
        // A prompt that cannot be written is no reason to stop.
        let _ = io::stdout().flush();
    }
}

fn answer(repl: &mut Repl, line: &str) -> ExitCode {
    match repl.answer(line) {
        Ok(Some(text)) => println!("{text}"),
        Ok(None) => {}
        Err(error) => {
            eprintln!("{}", carets::render(line, &error));
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
