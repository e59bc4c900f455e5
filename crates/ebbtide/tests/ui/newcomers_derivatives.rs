//! What newcomers write where a derivative is asked for: one error each, which says what to write.
use ebbtide::prelude::*;

#[program]
fn fit(u: &mut Array1<f64>, k: f64, loss: &mut Array0<f64>) {
    for i in par(0..u.len()) {
        loss[[]] += k * u[i];
    }
}

fn main() -> ebbtide::Result<()> {
    let device = Device::best()?;
    let (u, loss) = (device.array(&[1.0, 2.0])?, device.zeros([])?);
    let _ = fit().grad("loss");
    let _ = fit().grad(&loss);
    let _ = fit().grad(fit::loss).wrt(&u);
    let _ = fit().grad(fit::loss).wrt((fit::u, fit::k));
    let _ = fit().compile(&device)?.grad(fit::loss);
    let out = fit().grad(fit::loss).wrt(fit::u).compile(&device)?.launch((&u, 0.5, &loss))?;
    let _ = out.get("u")?;
    Ok(())
}
