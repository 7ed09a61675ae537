import { expect } from "chai";
import { createTheme, detectTheme } from "#tui/ink/theme.ts";
import { widthOf } from "#base/text.ts";

const terminal = (bits: number) => ({ getColorDepth: () => bits });
const detected = (env: Record<string, string>, bits = 8) => {
  const { depth, background, unicode } = detectTheme(env, terminal(bits));
  return { depth, background, unicode };
};

describe("the theme", () => {
  it("has as many colours as the terminal", () => {
    expect([24, 8, 4, 1].map((bits) => detected({}, bits).depth)).to.deep.equal([256, 256, 16, 0]);
  });

  it("has no colours under NO_COLOR, in a dumb terminal, and with FORCE_COLOR=0", () => {
    expect([detected({ NO_COLOR: "1" }).depth, detected({ NO_COLOR: "" }).depth]).to.deep.equal([0, 256]);
    expect([detected({ TERM: "dumb" }).depth, detected({ FORCE_COLOR: "0" }).depth]).to.deep.equal([0, 0]);
  });

  it("has Unicode shapes only with a UTF-8 locale on a terminal that can draw them", () => {
    expect([detected({ LANG: "de_DE.UTF-8" }).unicode, detected({ LANG: "C.utf8" }).unicode]).to.deep.equal([
      true,
      true,
    ]);
    expect(detected({ LANG: "de_DE.UTF-8", LC_ALL: "C" }).unicode).to.equal(false);
    expect(detected({ LANG: "C", LC_CTYPE: "en_US.UTF-8" }).unicode).to.equal(true);
    expect([detected({ LANG: "de_DE.UTF-8", TERM: "linux" }).unicode, detected({}).unicode]).to.deep.equal([
      false,
      false,
    ]);
  });

  it("has the background of COLORFGBG or KCORE_BACKGROUND", () => {
    expect(detected({ COLORFGBG: "15;0" }).background).to.equal("dark");
    expect(detected({ COLORFGBG: "0;15" }).background).to.equal("light");
    expect(detected({ COLORFGBG: "0;default;7" }).background).to.equal("light");
    expect(detected({ COLORFGBG: "0;15", KCORE_BACKGROUND: "dark" }).background).to.equal("dark");
    expect(detected({}).background).to.equal("unknown");
  });

  it("paints no colours at depth 0, and resets each colour", () => {
    const plain = createTheme({ depth: 0, background: "unknown", unicode: true });
    for (const role of ["ok", "changed", "failed", "warning", "muted", "banner"] as const)
      expect(plain.paint(role, "x").replaceAll("\u001b", "")).to.match(/^(\[[1247]m)?x(\[0m)?$/);
    const coloured = createTheme({ depth: 256, background: "light", unicode: true });
    expect(coloured.paint("failed", "x").split("\u001b")).to.deep.equal(["", "[1;38;5;160mx", "[0m"]);
    expect(coloured.paint("failed", "")).to.equal("");
  });

  it("has a different shape for each outcome", () => {
    for (const unicode of [true, false]) {
      const { glyphs } = createTheme({ depth: 16, background: "unknown", unicode });
      const { ok, changed, wouldChange, failed, skipped, unknown, interrupted, pending } = glyphs;
      expect(new Set([ok, changed, wouldChange, failed, skipped, unknown, interrupted, pending]).size).to.equal(8);
    }
  });

  it("has shapes of one column, and ASCII ones without Unicode", () => {
    const {
      running,
      levels,
      hung: _,
      ...shapes
    } = createTheme({ depth: 16, background: "dark", unicode: true }).glyphs;
    const several = ["arrow", "enter", "upDown", "leftRight"];
    const single = Object.entries(shapes).flatMap(([name, shape]) => (several.includes(name) ? [] : [shape]));
    expect([...Array.from(running + levels), ...single].filter((shape) => widthOf(shape) !== 1)).to.deep.equal([]);
    const ascii = createTheme({ depth: 16, background: "dark", unicode: false });
    expect(Object.values(ascii.glyphs).join("")).to.match(/^[\x20-\x7e]*$/);
  });

  it("has colours with enough contrast on white and black if the background is unknown", () => {
    const { paint } = createTheme({ depth: 256, background: "unknown", unicode: true });
    for (const role of ["muted", "accent", "ok", "changed", "failed", "running", "warning"] as const) {
      const colour = Number(/38;5;(\d+)/.exec(paint(role, "x"))?.[1]);
      const light = luminance(colour);
      expect(1.05 / (light + 0.05), `${role} on white`).to.be.at.least(2.9);
      expect((light + 0.05) / 0.05, `${role} on black`).to.be.at.least(2.9);
    }
  });
});

/** Relative luminance (WCAG 2) of one of the 256 colours beyond the first 16. */
function luminance(colour: number): number {
  const steps = [0, 95, 135, 175, 215, 255];
  const grey = 8 + 10 * (colour - 232);
  const cube = colour - 16;
  const rgb =
    colour >= 232 ? [grey, grey, grey] : [cube / 36, (cube / 6) % 6, cube % 6].map((at) => steps[Math.floor(at)] ?? 0);
  const [red = 0, green = 0, blue = 0] = rgb.map((value) => {
    const share = value / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
