import { EventEmitter } from "node:events";
import { expect } from "chai";
import { promptLine } from "#cli/terminal/prompt.ts";

describe("a question outside the live view", () => {
  const stdin = Object.getOwnPropertyDescriptor(process, "stdin");
  afterEach(() => {
    Object.defineProperty(process, "stdin", stdin as PropertyDescriptor);
    // The prototype's method is in force again.
    Reflect.deleteProperty(process.stderr, "write");
  });

  /** A terminal whose input the test sends; `log` gets the output and the changes of its mode. */
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

  it("erases the width of a character at backspace and of the line at Ctrl-U", async () => {
    const log: string[] = [];
    const input = openTerminal(log);
    const { signal } = new AbortController();
    const answer = promptLine({ text: "Name", secret: false, signal, onInterrupt: () => undefined });
    input.emit("data", "a名\u007fb\u0015c\n");
    expect(await answer).to.equal("c");
    expect(log.filter((text) => text.includes("\\b"))).to.deep.equal(['"\\b \\b\\b \\b"', '"\\b \\b\\b \\b"']);
  });

  it("for a secret is shown after echo is off, and discards typed input when another terminal answers", async () => {
    const log: string[] = [];
    const input = openTerminal(log);
    const stop = new AbortController();
    const answer = promptLine({ text: "Passphrase", secret: true, signal: stop.signal, onInterrupt: () => undefined });
    input.emit("data", "hunt");
    // Another terminal answered while the rest of the input was on its way.
    stop.abort();
    setImmediate(() => log.push(`read ${input.emit("data", "er2\n")}`));
    expect(await answer).to.equal(undefined);
    expect(log).to.deep.equal(["raw true", '"Passphrase: "', "read true", "raw false", "pause", '"\\n"']);
  });
});
