import { expect } from "chai";
import { render } from "ink-testing-library";
import { createElement as h } from "react";
import { Lines } from "#tui/ink/screen.ts";
import { span } from "#tui/ink/text.ts";
import { recordedRun } from "#support/recorded-runs.ts";
import { plainTheme, sceneOf } from "#support/scenes.ts";

describe("the components of the live view", () => {
  it("draw lines one below the other, empty ones too, each cut to the width", () => {
    const lines = [[span("first")], [], [span("a third that is too long")]];
    const { lastFrame, unmount } = render(h(Lines, { lines, width: 10, theme: plainTheme }));
    expect(
      lastFrame()
        ?.split("\n")
        .map((line) => line.trimEnd()),
    ).to.deep.equal(["first", "", "a third t…"]);
    unmount();
  });

  it("draw a scene again with only what changed", () => {
    const events = recordedRun("done");
    const draw = (count: number) =>
      h(Lines, { lines: sceneOf(events.slice(0, count)).lines, width: 80, theme: plainTheme });
    const { lastFrame, rerender, unmount } = render(draw(12));
    expect(lastFrame()?.split("\n").length).to.equal(24);
    expect(lastFrame()).to.contain("running");
    rerender(draw(events.length));
    expect(lastFrame()).to.contain("✓ done").and.contain("n1");
    unmount();
  });
});
