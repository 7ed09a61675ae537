import { EventEmitter } from "node:events";
import { expect } from "chai";
import { promptLine } from "#cli/terminal/prompt.ts";

describe("a question in lines", () => {
  const stdin = Object.getOwnPropertyDescriptor(process, "stdin");
  afterEach(() => {
    Object.defineProperty(process, "stdin", stdin as PropertyDescriptor);
    // Without the property, the prototype's method counts again.
    Reflect.deleteProperty(process.stderr, "write");
  });

  /** A terminal whose keys the test types; `log` gets the texts and the changes of its mode. */
  const openTerminal = (log: string[]): EventEmitter => {
    const input = Object.assign(new EventEmitter(), {
      setRawMode: (isRaw: boolean) => log.push(`raw ${isRaw}`),
      setEncoding: () => undefined,
      resume: () => undefined,
      pause: () => log.push("pause"),
    });
    Object.defineProperty(process, "stdin", { configurable: true, value: input });
    process.stderr.write = ((text: string) => log.push(JSON.stringify(text)) > 0) as typeof process.stderr.write;
    return input;
  };

  it("erases as many columns as a character takes", async () => {
    const log: string[] = [];
    const input = openTerminal(log);
    const { signal } = new AbortController();
    const answer = promptLine({ text: "Name", secret: false, signal, onInterrupt: () => undefined });
    input.emit("data", "a名\u007fb\u0015c\n");
    expect(await answer).to.equal("c");
    expect(log.filter((text) => text.includes("\\b"))).to.deep.equal(['"\\b \\b\\b \\b"', '"\\b \\b\\b \\b"']);
  });

  it("V1: is shown when nothing is echoed any more, and leaves nothing that was typed for it", async () => {
    const log: string[] = [];
    const input = openTerminal(log);
    const stop = new AbortController();
    const answer = promptLine({ text: "Passphrase", secret: true, signal: stop.signal, onInterrupt: () => undefined });
    input.emit("data", "hunt");
    // Another terminal answered while the rest of the input was on its way.
    stop.abort();
    setImmediate(() => log.push(`heard ${input.emit("data", "er2\n")}`));
    expect(await answer).to.equal(undefined);
    expect(log).to.deep.equal(["raw true", '"Passphrase: "', "heard true", "raw false", "pause", '"\\n"']);
  });
});
