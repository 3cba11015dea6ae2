//! Places labels next to points so that they cover neither each other nor a point.

/// Width of a label's character in parts of its font size; generous for the digits and small letters of codec names.
const CHARACTER_WIDTH: f64 = 0.58;

/// Cost of each pixel of distance from its point, in square pixels of overlap.
const FAR: f64 = 1.0;
/// Cost of being nearer to another point.
const MISLEADING: f64 = 150.0;

/// An upright box in pixels.
#[derive(Debug, Clone, Copy)]
struct Area {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Area {
    fn overlap(&self, other: &Self) -> f64 {
        let width = self.right.min(other.right) - self.left.max(other.left);
        let height = self.bottom.min(other.bottom) - self.top.max(other.top);
        width.max(0.0) * height.max(0.0)
    }

    /// From a point to the nearest part of it.
    fn distance(&self, (x, y): (f64, f64)) -> f64 {
        let across = (self.left - x).max(x - self.right).max(0.0);
        let up = (self.top - y).max(y - self.bottom).max(0.0);
        across.hypot(up)
    }

    fn outside(&self, of: &Self) -> f64 {
        let area = |a: &Self| (a.right - a.left) * (a.bottom - a.top);
        area(self) - self.overlap(of)
    }
}

/// Left ends and middles of labels for points of radius `radius`, within a canvas of `size` pixels.
pub(crate) fn place(points: &[((i32, i32), &str)], font_size: f64, radius: f64, size: (u32, u32)) -> Vec<(i32, i32)> {
    let canvas = Area {
        left: 0.0,
        top: 0.0,
        right: size.0.into(),
        bottom: size.1.into(),
    };
    let centre = |(x, y): (i32, i32)| (f64::from(x), f64::from(y));
    let mut taken: Vec<Area> = points
        .iter()
        .map(|&(point, _)| {
            let (x, y) = centre(point);
            Area {
                left: x - radius,
                top: y - radius,
                right: x + radius,
                bottom: y + radius,
            }
        })
        .collect();
    let mut placed = Vec::with_capacity(points.len());
    for &(point, label) in points {
        let (x, y) = centre(point);
        let width = label.chars().count() as f64 * font_size * CHARACTER_WIDTH;
        let half = font_size * 0.6;
        let gap = radius + 4.0;
        // Right, left, then rows ever farther above and below.
        let mut spots = vec![(x + gap, y), (x - gap - width, y)];
        for row in 1..=6 {
            let away = f64::from(row) * 2.0 * half + radius;
            for dy in [-away, away] {
                spots.extend([(x + gap, y + dy), (x - width / 2.0, y + dy), (x - gap - width, y + dy)]);
            }
        }
        let area = |&(left, middle): &(f64, f64)| Area {
            left,
            top: middle - half,
            right: left + width,
            bottom: middle + half,
        };
        let cost = |spot: &(f64, f64)| {
            let area = area(spot);
            let away = area.distance((x, y));
            // A label that is nearer to another's point would be taken for that one's.
            let others = points.iter().filter(|(other, _)| *other != point);
            let misleads = others
                .filter(|(other, _)| area.distance(centre(*other)) < away + 2.0)
                .count();
            let overlap = taken.iter().map(|other| area.overlap(other)).sum::<f64>();
            overlap + 10.0 * area.outside(&canvas) + away * FAR + misleads as f64 * MISLEADING
        };
        let best = spots
            .iter()
            .copied()
            .reduce(|best, spot| if cost(&spot) < cost(&best) { spot } else { best });
        let best = best.unwrap_or((x + gap, y));
        taken.push(area(&best));
        placed.push((best.0.round() as i32, best.1.round() as i32));
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_points_close_together_do_not_overlap() {
        let names = [
            "none",
            "lz4",
            "lz4:fast=4",
            "zstd:1",
            "zstd:3",
            "deflate:1",
            "zlib:1",
            "qpl:software:fixed",
        ];
        let points: Vec<_> = names
            .iter()
            .enumerate()
            .map(|(i, name)| ((300 + i as i32, 200 - i as i32), *name))
            .collect();
        let places = place(&points, 13.0, 5.0, (600, 400));
        let areas: Vec<_> = places
            .iter()
            .zip(names)
            .map(|(&(left, middle), name)| Area {
                left: left.into(),
                top: f64::from(middle) - 7.0,
                right: f64::from(left) + name.len() as f64 * 13.0 * CHARACTER_WIDTH,
                bottom: f64::from(middle) + 7.0,
            })
            .collect();
        for (i, one) in areas.iter().enumerate() {
            assert!(
                one.left >= 0.0 && one.right <= 600.0 && one.top >= 0.0 && one.bottom <= 400.0,
                "{one:?}"
            );
            for other in &areas[..i] {
                assert!(one.overlap(other) < 10.0, "{one:?} {other:?}");
            }
        }
    }
}
