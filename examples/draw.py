"""Draw the pictures of the gallery: run the examples, and write docs/images/gallery.

``python examples/draw.py`` draws all of them, ``python examples/draw.py era5`` one. It needs the
extra ``docs``. The pictures are transparent and their text is grey, to be legible on light and dark
pages.
"""

import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib as mpl

mpl.use("agg")  # no screen

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.dates import DateFormatter
from matplotlib.patches import Rectangle
from PIL import Image

TARGET = Path(__file__).parents[1] / "docs" / "images" / "gallery"
NAMES = [
    *("era5", "satellite", "microscopy", "terrain", "mask", "months", "heat", "repair"),
    *("many_days", "versions"),
    *("cluster_rechunk", "s3"),
]
GREY = "#7d8590"
ORANGE = "#d55e00"
BLUE = "#0072b2"


def axes(*widths, height=2.9):
    """Return a figure with plots side by side, of these relative widths."""
    return plt.subplots(1, len(widths), figsize=(8, height), width_ratios=widths, layout="tight")


def box(ax, index, chunk, **style):
    """Draw the frame of one chunk on an image."""
    (row, column), (height, width) = index, chunk
    place = column * width - 0.5, row * height - 0.5
    ax.add_patch(Rectangle(place, width, height, **{"fill": False, "color": ORANGE, **style}))


def bare(ax, title):
    """Take the ticks away, and set a title."""
    ax.set(xticks=[], yticks=[], title=title)


def era5(result):
    """Draw a map with the chunks of the series, and the series of the place."""
    field, place, berlin, chunks = result
    figure, (left, right) = axes(1.5, 1)
    left.imshow(field, cmap="RdYlBu_r", interpolation="bilinear")
    for edge in range(0, 145, chunks[2]):
        left.axvline(edge - 0.5, color="k", lw=0.3)
    for edge in range(0, 73, chunks[1]):
        left.axhline(edge - 0.5, color="k", lw=0.3)
    box(left, (berlin[0] // 8, berlin[1] // 8), chunks[1:], lw=2, color="k")
    bare(left, "16 July, with the chunks of the time series")
    right.plot(place - 273.15, color=BLUE, lw=0.8)
    right.set(title="the framed chunk: Berlin, °C", xlabel="day of the year")
    return figure


def satellite(result):
    """Draw a scene, the number of times that a pixel was seen, and the mean."""
    scene, count, mean = result
    figure, plots = axes(1, 1, 1)
    plots[0].imshow(np.ma.masked_equal(scene, -1), cmap="summer", interpolation="nearest")
    for i in range(8):
        for j in range(8):
            if (scene[64 * i : 64 * i + 64, 64 * j : 64 * j + 64] != -1).any():
                box(plots[0], (i, j), (64, 64), lw=0.8)
    bare(plots[0], "day 14 and its stored chunks")
    plots[1].imshow(count, cmap="viridis")
    bare(plots[1], "clear days of 20")
    plots[2].imshow(mean, cmap="summer")
    bare(plots[2], "mean of the clear days")
    return figure


def microscopy(result):
    """Draw one plane at each resolution, with its chunks."""
    figure, plots = axes(4, 2, 1)
    for plot, plane, name in zip(plots, result, "012", strict=True):
        plot.imshow(plane, cmap="magma", vmax=2000)
        for i in range(-(-plane.shape[0] // 64)):
            for j in range(-(-plane.shape[1] // 64)):
                box(plot, (i, j), (64, 64), lw=0.4, color="w")
        bare(plot, f"level {name}")
    return figure


def terrain(result):
    """Draw the heights at two resolutions, and the classes of the coarser one."""
    figure, plots = axes(1, 1, 1)
    for plot, number in zip(plots, (0, 3), strict=False):
        height, cover = result[number]
        plot.imshow(height, cmap="terrain", interpolation="nearest")
        for i in range(-(-height.shape[0] // 100)):
            for j in range(-(-height.shape[1] // 100)):
                box(plot, (i, j), (100, 100), lw=0.4, color="w")
        plot.set(xlim=(-0.5, height.shape[1] - 0.5), ylim=(height.shape[0] - 0.5, -0.5))
        bare(plot, f"heights, level {number}")
    colours = ListedColormap(["#4a90c2", "#b8d977", "#3f7d3a", "#9a8f85"])
    plots[2].imshow(cover, cmap=colours, interpolation="nearest")
    bare(plots[2], "land cover, level 3")
    return figure


def mask(result):
    """Draw the mask and the chunks that are stored."""
    values, stored, chunk = result
    figure, (left, right) = axes(1, 1)
    small = values.reshape(512, 8, 512, 8).any(axis=(1, 3))
    left.imshow(np.ma.masked_equal(small, 0), cmap="autumn", interpolation="nearest")
    for spine in left.spines.values():
        spine.set_color(GREY)
    bare(left, "the mask")
    grid = np.zeros((values.shape[0] // chunk,) * 2)
    grid[tuple(np.transpose(stored))] = 1
    right.imshow(np.ma.masked_equal(grid, 0), cmap=ListedColormap([BLUE]), interpolation="nearest")
    bare(right, f"{len(stored)} of {grid.size} chunks are stored")
    return figure


def many_days(result):
    """Draw some of the daily maps, and the series of one place across all stores."""
    maps, series, missing = result
    figure, plots = axes(*[1] * len(maps), 1.3, height=2.3)
    limits = {"vmin": np.nanmin(maps), "vmax": np.nanmax(maps)}
    for number, (ax, values) in enumerate(zip(plots, maps, strict=False)):
        ax.imshow(values, cmap="RdYlBu_r", **limits)
        bare(ax, f"day {30 + 100 * number}")
    right = plots[-1]
    right.plot(series, color=BLUE)
    right.axvline(missing, color=ORANGE, ls=":")
    right.set(title="one place, 365 stores", xlabel="day (dotted: missing)", ylabel="C")
    return figure


def months(result):
    """Draw the rain of each day, with a band for each chunk, and the sums."""
    days, lengths, sums = result
    figure, (left, right) = axes(2, 1)
    start = 0
    for number, length in enumerate(lengths):
        left.axvspan(start, start + length, color=BLUE, alpha=0.08 + 0.12 * (number % 2), lw=0)
        start += length
    left.bar(np.arange(len(days)), days, width=1, color=BLUE)
    left.set(title="rain, mm a day; a band is a chunk", xlim=(0, len(days)), xlabel="day")
    right.bar(np.arange(1, 13), sums, color=BLUE)
    right.set(title="mm a month", xticks=range(1, 13, 2))
    return figure


def heat(result):
    """Draw the number of hot days, and the temperature of one place."""
    hot, rome = result
    figure, (left, right) = axes(1.1, 1)
    image = left.imshow(hot, cmap="YlOrRd", extent=(-10, 40, 35, 71), aspect=1.4)
    left.plot(rome.lon, rome.lat, "o", mfc="none", color="k")
    figure.colorbar(image, ax=left, shrink=0.8)
    left.set(title="days above 30 °C", xlabel="longitude", ylabel="latitude")
    right.plot(rome.time, rome, color=BLUE, lw=0.8)
    right.fill_between(rome.time, 30, rome, where=rome > 30, color=ORANGE)
    right.set(title="the circle: Rome, °C")
    right.xaxis.set_major_formatter(DateFormatter("%b"))
    return figure


def repair(result):
    """Draw the field, and the damaged chunks on it."""
    height, bad, chunks = result
    figure, (left, right) = axes(1, 1)
    broken = height.copy()
    for row, column in bad:
        broken[row * 48 : row * 48 + 48, column * 48 : column * 48 + 48] = np.nan
    left.imshow(broken, cmap="terrain")
    for index in bad:
        box(left, index, chunks, lw=1.5)
    bare(left, f"{len(bad)} of 64 chunks can't be read")
    right.imshow(height, cmap="terrain")
    bare(right, "repaired from the backup")
    return figure


def versions(result):
    """Draw the series of a place in each version, with the chunks of ten days."""
    figure, plots = axes(1, 1, 1, height=2.2)
    for ax, (name, days), color in zip(plots, result.items(), (GREY, BLUE, ORANGE), strict=True):
        for start in range(0, 60, 20):
            ax.axvspan(start, start + 10, color=BLUE, alpha=0.1, lw=0)
        ax.plot(np.arange(len(days)), days, color=color)
        ax.set(title=f"{name} snapshot", xlim=(0, 60), ylim=(253.3, 256.2), xlabel="day")
    plots[0].set_ylabel("52.5° N, K")
    return figure


def main(names):
    """Draw these pictures, or all of them."""
    TARGET.mkdir(parents=True, exist_ok=True)
    plt.rcParams.update({"savefig.transparent": True, "font.size": 9, "axes.titlesize": 9})
    for part in ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"):
        plt.rcParams[part] = GREY
    for name in names or NAMES:
        with TemporaryDirectory() as folder:
            result = import_module(name).main(Path(folder))
        if name in ("cluster_rechunk", "s3"):  # plans draw themselves
            (TARGET / f"{name}.svg").write_text(result.svg() + "\n")
            continue
        figure = globals()[name](result)
        figure.savefig(path := TARGET / f"{name}.png", dpi=100)
        Image.open(path).quantize(128, Image.Quantize.FASTOCTREE).save(path, optimize=True)


if __name__ == "__main__":
    main(sys.argv[1:])
