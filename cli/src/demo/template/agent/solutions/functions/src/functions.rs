//! The functions that can be called in an expression.

use crate::error::Error;

/// Calls a function by its name.
pub fn call(name: &str, arguments: &[f64]) -> Result<f64, Error> {
    let value = match (name, arguments) {
        ("sqrt", [x]) if *x < 0.0 => {
            return Err(Error::new("there is no square root of a negative number"));
        }
        ("sqrt", [x]) => x.sqrt(),
        ("abs", [x]) => x.abs(),
        ("round", [x]) => x.round(),
        ("floor", [x]) => x.floor(),
        ("ceil", [x]) => x.ceil(),
        ("sin", [x]) => x.sin(),
        ("cos", [x]) => x.cos(),
        ("ln", [x]) if *x <= 0.0 => {
            return Err(Error::new("there is no logarithm of what is not positive"));
        }
        ("ln", [x]) => x.ln(),
        ("max", [first, rest @ ..]) => rest.iter().copied().fold(*first, f64::max),
        ("min", [first, rest @ ..]) => rest.iter().copied().fold(*first, f64::min),
        ("sum", values) => values.iter().sum(),
        ("mean", [_, ..]) => arguments.iter().sum::<f64>() / arguments.len() as f64,
        ("max" | "min" | "mean", []) => {
            return Err(Error::new(format!("`{name}` needs at least one argument")));
        }
        ("sqrt" | "abs" | "round" | "floor" | "ceil" | "sin" | "cos" | "ln", _) => {
            let count = arguments.len();
            return Err(Error::new(format!(
                "`{name}` takes one argument, not {count}"
            )));
        }
        _ => return Err(Error::new(format!("there is no function `{name}`"))),
    };
    Ok(value)
}
