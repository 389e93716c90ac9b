//! A chart with two logarithmic axes, as SVG: what grows in proportion with n is a straight line of slope one.

use std::fmt::Write as _;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 70.0;
const BOTTOM: f64 = 45.0;

/// A line of the chart.
pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) colour: &'static str,
    pub(super) points: Vec<Point>,
}

/// A point of it; hollow if there would have been more, had one waited longer.
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) hollow: bool,
}

/// Whole decades that hold all the values.
struct Axis {
    from: i32,
    to: i32,
}

impl Axis {
    #[expect(clippy::cast_possible_truncation, reason = "a power of ten")]
    fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let from = values.clone().fold(f64::INFINITY, f64::min).log10().floor() as i32;
        let to = values.fold(0.0, f64::max).log10().ceil() as i32;
        Self { from, to: to.max(from + 1) }
    }

    /// Where a value is between the ends, which are 0 and 1.
    fn place(&self, value: f64) -> f64 {
        (value.log10() - f64::from(self.from)) / f64::from(self.to - self.from)
    }
}

fn across(axis: &Axis, x: f64) -> f64 {
    LEFT + axis.place(x) * (WIDTH - LEFT - RIGHT)
}

fn down(axis: &Axis, y: f64) -> f64 {
    HEIGHT - BOTTOM - axis.place(y) * (HEIGHT - TOP - BOTTOM)
}

/// A number as short as it can be said.
fn label(power: i32) -> String {
    if power < 0 {
        format!("{:.*}", power.unsigned_abs() as usize, 10_f64.powi(power))
    } else {
        format!("{}", 10_f64.powi(power))
    }
}

/// Draws it; none if there is nothing to draw. Zero has no place on such an axis.
pub(super) fn draw(title: &str, unit: &str, mut lines: Vec<Line>) -> Option<String> {
    for line in &mut lines {
        line.points.retain(|point| point.x > 0.0 && point.y > 0.0);
        line.points.sort_by(|one, other| one.x.total_cmp(&other.x));
    }
    lines.retain(|line| !line.points.is_empty());
    if lines.is_empty() {
        return None;
    }
    let points = || lines.iter().flat_map(|line| &line.points);
    let (wide, high) = (Axis::of(points().map(|point| point.x)), Axis::of(points().map(|point| point.y)));
    let mut svg = String::new();
    // Writing to a String cannot fail.
    let _ = frame(&mut svg, title, unit, &wide, &high);
    let mut left = LEFT;
    for line in &lines {
        let _ = curve(&mut svg, line, &wide, &high).and_then(|()| key(&mut svg, line, left));
        // About as wide as its name.
        left += 36.0 + 7.0 * f64::from(u8::try_from(line.name.len()).unwrap_or(u8::MAX));
    }
    svg.push_str("</svg>\n");
    Some(svg)
}

fn frame(svg: &mut String, title: &str, unit: &str, wide: &Axis, high: &Axis) -> std::fmt::Result {
    writeln!(
        svg,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12" fill="#333">
<title>{title}</title>
<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>
<text x="{LEFT}" y="22" font-size="15" font-weight="bold">{title}</text>
<text x="16" y="{middle}" text-anchor="middle" transform="rotate(-90 16 {middle})">{unit}</text>
<text x="{centre}" y="{low}" text-anchor="middle">n</text>"##,
        middle = f64::midpoint(TOP, HEIGHT - BOTTOM),
        centre = f64::midpoint(LEFT, WIDTH - RIGHT),
        low = HEIGHT - 8.0,
    )?;
    for power in wide.from..=wide.to {
        let x = across(wide, 10_f64.powi(power));
        let (top, bottom) = (TOP, HEIGHT - BOTTOM);
        writeln!(svg, r##"<line x1="{x:.1}" y1="{top}" x2="{x:.1}" y2="{bottom}" stroke="#ddd"/>"##)?;
        writeln!(
            svg,
            r#"<text x="{x:.1}" y="{}" text-anchor="middle">{}</text>"#,
            bottom + 18.0,
            label(power)
        )?;
    }
    for power in high.from..=high.to {
        let y = down(high, 10_f64.powi(power));
        let (left, right) = (LEFT, WIDTH - RIGHT);
        writeln!(svg, r##"<line x1="{left}" y1="{y:.1}" x2="{right}" y2="{y:.1}" stroke="#ddd"/>"##)?;
        writeln!(
            svg,
            r#"<text x="{}" y="{:.1}" text-anchor="end">{}</text>"#,
            left - 8.0,
            y + 4.0,
            label(power)
        )?;
    }
    Ok(())
}

fn curve(svg: &mut String, line: &Line, wide: &Axis, high: &Axis) -> std::fmt::Result {
    let Line { name, colour, points } = line;
    let at = |point: &Point| (across(wide, point.x), down(high, point.y));
    let path: Vec<String> = points.iter().map(at).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    writeln!(
        svg,
        r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2"/>"#,
        path.join(" ")
    )?;
    for point in points {
        let (x, y) = at(point);
        let fill = if point.hollow { "white" } else { colour };
        writeln!(
            svg,
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="4" fill="{fill}" stroke="{colour}" stroke-width="2"><title>{name}: {:.3}</title></circle>"#,
            point.y
        )?;
    }
    Ok(())
}

/// Which line is whose.
fn key(svg: &mut String, line: &Line, left: f64) -> std::fmt::Result {
    let Line { name, colour, .. } = line;
    writeln!(svg, r#"<rect x="{left}" y="38" width="14" height="4" fill="{colour}"/>"#)?;
    writeln!(svg, r#"<text x="{}" y="44">{name}</text>"#, left + 20.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(points: &[(f64, f64)]) -> Line {
        let points = points.iter().map(|(x, y)| Point { x: *x, y: *y, hollow: false }).collect();
        Line { name: "nacre", colour: "black", points }
    }

    #[test]
    fn proportional_growth_is_a_straight_line() {
        let (wide, high) = (Axis { from: 2, to: 4 }, Axis { from: -1, to: 1 });
        let at = |n: f64| (across(&wide, n), down(&high, n / 1000.0));
        let (low, mid, top) = (at(100.0), at(1000.0), at(10_000.0));
        assert!((low.0 + top.0 - 2.0 * mid.0).abs() < 1e-9 && (low.1 + top.1 - 2.0 * mid.1).abs() < 1e-9);
        assert!(low.1 > top.1, "more is higher up");
    }

    #[test]
    fn what_has_no_logarithm_is_not_drawn() {
        assert_eq!(draw("t", "s", vec![line(&[(100.0, 0.0)])]), None);
        let svg = draw("t", "s", vec![line(&[(100.0, 0.0), (1000.0, 3.0)])]).unwrap();
        assert_eq!(svg.matches("<circle").count(), 1);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn labels_are_plain_numbers() {
        assert_eq!([-2, 0, 4].map(label), ["0.01", "1", "10000"]);
    }
}
