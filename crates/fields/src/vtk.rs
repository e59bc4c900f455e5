//! VTK's image data, `.vti`: fields on a regular grid, for ParaView and VisIt; and `.pvd`, a series of such files in time.
//!
//! The XML form with all data appended raw in one piece, as "VTK File Formats" (Kitware) describes it. Extents of a file
//! are in the order x, y, z, x fastest: the last dimension of an array is x.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use ebbtide_runtime::{Array, Element};

use crate::error::{Result, io, misfit};

/// A type of elements that VTK has too.
pub trait VtkElement: Element {
    /// Its name there.
    const NAME: &'static str;

    /// The elements as bytes, lowest first.
    fn bytes(elements: &[Self]) -> Vec<u8>;
}

macro_rules! vtk_elements {
    ($($t:ty => $name:literal;)*) => {$(
        impl VtkElement for $t {
            const NAME: &'static str = $name;

            fn bytes(elements: &[$t]) -> Vec<u8> {
                elements.iter().flat_map(|element| element.to_le_bytes()).collect()
            }
        }
    )*};
}

vtk_elements! {
    f32 => "Float32";
    f64 => "Float64";
    i32 => "Int32";
    i64 => "Int64";
    u32 => "UInt32";
}

/// Fields on one regular grid of rank 1 to 3, to be written to a `.vti` file.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("wave.vti");
/// use ebbtide_fields::Image;
/// # let device = ebbtide_runtime::interpreter();
/// let pressure = device.zeros::<f32, 2>([50, 100])?; // 50 deep, 100 wide
/// Image::new([50, 100]).spacing([10.0, 10.0]).field("pressure", &pressure)?.write(&path)?;
/// # Ok::<(), ebbtide_fields::Error>(())
/// ```
pub struct Image<const R: usize> {
    shape: [usize; R],
    origin: [f64; R],
    spacing: [f64; R],
    fields: Vec<Field>,
}

struct Field {
    name: String,
    ty: &'static str,
    bytes: Vec<u8>,
}

impl<const R: usize> Image<R> {
    /// A grid with this number of points in each dimension, spacing 1, the first point at zero.
    pub fn new(shape: [usize; R]) -> Image<R> {
        Image { shape, origin: [0.0; R], spacing: [1.0; R], fields: Vec::new() }
    }

    /// The distance of neighbouring points in each dimension.
    pub fn spacing(mut self, spacing: [f64; R]) -> Image<R> {
        self.spacing = spacing;
        self
    }

    /// Where the first point is.
    pub fn origin(mut self, origin: [f64; R]) -> Image<R> {
        self.origin = origin;
        self
    }

    /// Adds a field, one value at each point.
    pub fn field<T: VtkElement>(mut self, name: &str, array: &Array<T, R>) -> Result<Image<R>> {
        if array.shape() != self.shape {
            let message = format!("field `{name}` has shape {:?}, the grid {:?}", array.shape(), self.shape);
            return Err(misfit(Path::new("a .vti file"), message));
        }
        self.fields.push(Field { name: name.to_string(), ty: T::NAME, bytes: T::bytes(array.as_slice()) });
        Ok(self)
    }

    /// Writes the file.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        if !(1..=3).contains(&R) || self.shape.contains(&0) {
            let message =
                format!("an image has rank 1 to 3 and points in each dimension, not shape {:?}", self.shape);
            return Err(misfit(path, message));
        }
        let mut file = BufWriter::new(File::create(path).map_err(io(path))?);
        let mut write = |bytes: &[u8]| file.write_all(bytes).map_err(io(path));
        write(self.header().as_bytes())?;
        for field in &self.fields {
            write(&(field.bytes.len() as u64).to_le_bytes())?;
            write(&field.bytes)?;
        }
        write(b"\n  </AppendedData>\n</VTKFile>\n")?;
        file.flush().map_err(io(path))
    }

    /// All before the data.
    fn header(&self) -> String {
        // x first: the last dimension of the arrays.
        let mut extent = ["0 0"; 3].map(str::to_string);
        let (mut origin, mut spacing) =
            (["0".to_string(), "0".into(), "0".into()], ["1"; 3].map(str::to_string));
        for k in 0..R.min(3) {
            let axis = R - 1 - k;
            extent[k] = format!("0 {}", self.shape[axis].saturating_sub(1));
            origin[k] = self.origin[axis].to_string();
            spacing[k] = self.spacing[axis].to_string();
        }
        let (extent, origin, spacing) = (extent.join(" "), origin.join(" "), spacing.join(" "));
        let mut text = format!(
            "<?xml version=\"1.0\"?>\n\
             <VTKFile type=\"ImageData\" version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\">\n  \
             <ImageData WholeExtent=\"{extent}\" Origin=\"{origin}\" Spacing=\"{spacing}\">\n    \
             <Piece Extent=\"{extent}\">\n      <PointData>\n"
        );
        let mut offset = 0;
        for Field { name, ty, bytes } in &self.fields {
            let name = escape(name);
            let _ = writeln!(
                text,
                "        <DataArray type=\"{ty}\" Name=\"{name}\" format=\"appended\" offset=\"{offset}\"/>"
            );
            offset += 8 + bytes.len();
        }
        text + "      </PointData>\n    </Piece>\n  </ImageData>\n  <AppendedData encoding=\"raw\">\n   _"
    }
}

/// Writes a `.pvd` file: which file shows which time. ParaView opens it as one thing that moves.
///
/// Relative paths are those from the `.pvd` file.
pub fn write_series<P: AsRef<Path>>(path: impl AsRef<Path>, files: &[(f64, P)]) -> Result<()> {
    let path = path.as_ref();
    let mut text = "<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"0.1\">\n  <Collection>\n"
        .to_string();
    for (time, file) in files {
        let file = escape(&file.as_ref().to_string_lossy());
        let _ = writeln!(text, "    <DataSet timestep=\"{time}\" file=\"{file}\"/>");
    }
    text += "  </Collection>\n</VTKFile>\n";
    std::fs::write(path, text).map_err(io(path))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_runtime::interpreter;

    #[test]
    fn the_last_dimension_is_x_and_data_are_appended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.vti");
        let device = interpreter();
        let a = device.from_fn([2, 3], |[i, j]| (10 * i + j) as f64).unwrap();
        let b = device.from_fn([2, 3], |[i, j]| (i + j) as i32).unwrap();
        let image = Image::new([2, 3]).spacing([0.5, 0.25]).origin([1.0, 2.0]);
        image.field("a<b", &a).unwrap().field("b", &b).unwrap().write(&path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let start = bytes.windows(5).position(|five| five == b"\n   _").unwrap() + 5;
        let header = String::from_utf8(bytes[..start].to_vec()).unwrap();
        assert_eq!(
            header,
            r#"<?xml version="1.0"?>
<VTKFile type="ImageData" version="1.0" byte_order="LittleEndian" header_type="UInt64">
  <ImageData WholeExtent="0 2 0 1 0 0" Origin="2 1 0" Spacing="0.25 0.5 1">
    <Piece Extent="0 2 0 1 0 0">
      <PointData>
        <DataArray type="Float64" Name="a&lt;b" format="appended" offset="0"/>
        <DataArray type="Int32" Name="b" format="appended" offset="56"/>
      </PointData>
    </Piece>
  </ImageData>
  <AppendedData encoding="raw">
   _"#
        );
        let word = |at: usize| u64::from_le_bytes(bytes[start + at..start + at + 8].try_into().unwrap());
        assert_eq!((word(0), word(56)), (48, 24));
        assert_eq!(f64::from_bits(word(8 + 5 * 8)), 12.0);
    }

    #[test]
    fn a_field_of_another_shape_is_refused() {
        let field = interpreter().zeros::<f64, 2>([2, 2]).unwrap();
        let Err(error) = Image::new([2, 3]).field("u", &field) else { panic!("it was taken") };
        assert!(error.to_string().contains("field `u` has shape [2, 2], the grid [2, 3]"), "{error}");
    }

    #[test]
    fn a_series_names_its_files_and_times() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.pvd");
        write_series(&path, &[(0.0, "a0.vti"), (0.5, "a1.vti")]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("<DataSet timestep=\"0.5\" file=\"a1.vti\"/>"), "{text}");
    }
}
