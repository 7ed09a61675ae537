import { expect } from "chai";
import { isMove, pressScreenKey, typeInto } from "#tui/ink/shared-keys.ts";

const key = (name: string, text = "") => ({ name, text });

describe("the keys that all views share", () => {
  it("lead to the shell and draw anew", () => {
    expect(pressScreenKey(key("ctrl+z"))).to.deep.equal({ type: "suspend" });
    expect(pressScreenKey(key("ctrl+l"))).to.deep.equal({ type: "redraw" });
    expect(pressScreenKey(key("q", "q"))).to.equal(undefined);
  });
  it("type into a field, take back whole characters, and clear it", () => {
    expect([typeInto("n", key("1", "1")), typeInto("n🙂", key("backspace"))]).to.deep.equal(["n1", "n"]);
    expect([typeInto("n1", key("ctrl+u")), typeInto("n1", key("left"))]).to.deep.equal(["", undefined]);
  });
  it("move in what a search shows, but for those that a text is typed with", () =>
    expect(["up", "down", "pageup", "pagedown", "j", "home"].map((name) => isMove(key(name)))).to.deep.equal([
      true,
      true,
      true,
      true,
      false,
      false,
    ]));
});
