import { stripVTControlCharacters } from "node:util";
import { expect } from "chai";
import type { Key } from "ink";
import { helpLines, keyPresses, typeInto } from "#tui/ink/keys.ts";
import { paintLine } from "#tui/ink/text.ts";
import { plainTheme } from "#support/scenes.ts";

const none = {} as Key;
const names = (input: string, key: Partial<Key> = {}) => keyPresses(input, { ...none, ...key }).map(({ name }) => name);

describe("keys", () => {
  it("have their own names, or those of their characters", () => {
    expect([names("", { upArrow: true }), names("c", { ctrl: true })]).to.deep.equal([["up"], ["ctrl+c"]]);
    expect([names("j"), names(" "), names("", { delete: true })]).to.deep.equal([["j"], ["space"], ["backspace"]]);
    expect(names("", { tab: true, shift: true })).to.deep.equal(["shift+tab"]);
  });

  it("come one by one, also from a paste", () => {
    expect(names("jjk")).to.deep.equal(["j", "j", "k"]);
    expect(names("yes\r")).to.deep.equal(["y", "e", "s", "enter"]);
    expect(keyPresses("pä ß", none).map(({ text }) => text)).to.deep.equal(["p", "ä", " ", "ß"]);
  });

  it("do not include a terminal's replies", () =>
    expect([names("[?64;1c"), names("[1;"), names("O2P"), names("x", { meta: true })]).to.deep.equal([[], [], [], []]));

  it("include pasted text that begins like a terminal's sequence", () =>
    expect([names("Oslo"), names("[a]")]).to.deep.equal([
      ["O", "s", "l", "o"],
      ["[", "a", "]"],
    ]));

  it("have a help that wraps in a narrow terminal", () => {
    const keys = [
      { keys: "q", long: "leave; the run goes on" },
      { keys: "PgUp", long: "a page up" },
    ];
    const lines = (width: number) =>
      helpLines(keys, width).map((line) => stripVTControlCharacters(paintLine(line, width, plainTheme)).trimEnd());
    expect(lines(40)).to.deep.equal(["    q  leave; the run goes on", " PgUp  a page up"]);
    expect(lines(20)).to.deep.equal(["    q  leave; the", "       run goes on", " PgUp  a page up"]);
  });

  it("type into a field, delete whole characters, and clear the field", () => {
    const typed = (field: string, name: string, text = "") => typeInto(field, { name, text });
    expect([typed("n", "1", "1"), typed("n🙂", "backspace")]).to.deep.equal(["n1", "n"]);
    expect([typed("n1", "ctrl+u"), typed("n1", "left")]).to.deep.equal(["", undefined]);
  });
});
