import { expect } from "chai";
import { playerLine } from "#tui/ink/panels.ts";
import { detectTheme } from "#tui/ink/theme.ts";

describe("a replay's line", () => {
  const at = (speed: number): string =>
    playerLine({ playing: true, speed, at: 0, from: 0, to: 1000, ended: false }, detectTheme({}), 60)
      .map(({ text }) => text)
      .join("");

  it("tells how fast it plays, by the word that was typed", () => {
    expect(at(0.25)).to.include(" 0.25x ");
    expect(at(1e6)).to.include(" max ").and.not.include("1000000");
  });
});
