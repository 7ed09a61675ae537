import { expect } from "chai";
import { KcoreError } from "#errors/problem.ts";
import { chooseView, isScreen } from "../../../../src/cli/terminal/choose-view.ts";

const terminal = { isTTY: true, columns: 80 };
const usual = { stdin: terminal, stdout: terminal, env: { TERM: "xterm" }, recorded: () => false };

describe("the choice of the view", () => {
  it("is the live view at a terminal, and plain lines in pipes, in CI and on dumb terminals", () => {
    expect(chooseView(undefined, usual)).to.equal("ink");
    expect(chooseView(undefined, { ...usual, stdout: {} })).to.equal("plain");
    expect(chooseView(undefined, { ...usual, stdin: {} })).to.equal("plain");
    expect(chooseView(undefined, { ...usual, env: { TERM: "dumb" } })).to.equal("plain");
    expect(chooseView(undefined, { ...usual, env: {} })).to.equal("plain");
    expect(chooseView(undefined, { ...usual, env: { TERM: "xterm", CI: "true" } })).to.equal("plain");
    expect(chooseView(undefined, { ...usual, env: { TERM: "xterm", CI: "false" } })).to.equal("ink");
    expect(chooseView(undefined, { ...usual, recorded: () => true })).to.equal("plain");
    expect(chooseView(undefined, { ...usual, stdout: { isTTY: true, columns: 0 } })).to.equal("plain");
  });

  it("is the operator's choice; the live view is refused without a terminal", () => {
    expect([chooseView("json", usual), chooseView("plain", usual)]).to.deep.equal(["json", "plain"]);
    expect(chooseView("ink", { ...usual, env: { TERM: "xterm", CI: "1" } })).to.equal("ink");
    expect(() => chooseView("ink", { ...usual, stdout: {} })).to.throw(KcoreError, /needs a terminal/);
  });

  it("has colours only at a terminal that nothing records", () => {
    expect([isScreen(terminal, usual), isScreen({}, usual)]).to.deep.equal([true, false]);
    expect(isScreen(terminal, { ...usual, recorded: () => true })).to.equal(false);
  });
});
