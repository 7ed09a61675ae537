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
    expect(typeInto("n", key("1", "1"))).to.equal("n1");
    expect(typeInto("n🙂", key("backspace"))).to.equal("n");
    expect(typeInto("n1", key("ctrl+u"))).to.equal("");
    expect(typeInto("n1", key("left"))).to.equal(undefined);
  });
  it("move in what a search shows, but for those that a text is typed with", () => {
    expect(["up", "down", "pageup", "pagedown", "j", "home"].map((name) => isMove(key(name)))).to.deep.equal([
      true,
      true,
      true,
      true,
      false,
      false,
    ]);
  });
});
