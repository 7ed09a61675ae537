import { expect } from "chai";
import { inOrder, lineDrawer, type LogEntry, mergeByTime, parseEntry } from "#cli/reach/log-entries.ts";
import { journalText } from "#cli/reach/show-logs.ts";
import { FakeTimers } from "#support/fake-timers.ts";

const entry = (node: string, at: number): LogEntry => ({
  node,
  time: `2026-01-01T00:00:${String(at).padStart(2, "0")}Z`,
  unit: "u",
  priority: "6",
  pid: "1",
  message: `${at}`,
});

describe("parseEntry", () => {
  it("prefers the time at which the entry was made, with its microseconds", () => {
    const fields = {
      __REALTIME_TIMESTAMP: "1767225601000000",
      _SOURCE_REALTIME_TIMESTAMP: "1767225600000042",
      _SYSTEMD_UNIT: "ssh.service",
      PRIORITY: "6",
      _PID: "12",
      MESSAGE: "hi",
    };
    expect(parseEntry("n1", JSON.stringify(fields))).to.deep.equal({
      time: "2026-01-01T00:00:00.000042Z",
      node: "n1",
      unit: "ssh",
      priority: "6",
      pid: "12",
      message: "hi",
    });
  });

  it("reads bytes and several values; passes over lines that are no entries", () => {
    const fields = { __REALTIME_TIMESTAMP: "1", SYSLOG_IDENTIFIER: ["a", "b"], MESSAGE: [0xc3, 0xa9, 0xff] };
    expect(parseEntry("n1", JSON.stringify(fields))).to.include({ unit: "a\nb", message: "é\ufffd" });
    for (const line of ["{", "null", "7", "{}", '{"__REALTIME_TIMESTAMP":"x"}'])
      expect(parseEntry("n1", line), line).to.equal(undefined);
  });
});

describe("lineDrawer", () => {
  it("gives each line of a message time and node, and no control character", () => {
    const draw = lineDrawer(["n1", "n22"], false);
    expect(draw({ ...entry("n1", 1), message: "a\nb\u001b[2J\u0007\n" })).to.equal(
      "2026-01-01T00:00:01ZZ n1  u: a\n2026-01-01T00:00:01ZZ n1  u: b\\x07\n",
    );
    expect(lineDrawer(["n1"], true)(entry("n1", 1))).to.include("\u001b[36mn1\u001b[0m");
  });
});

describe("mergeByTime", () => {
  it("merges sources in the order of time, and holds one entry of each", async () => {
    let read = 0;
    async function* source(node: string, times: readonly number[]): AsyncGenerator<LogEntry> {
      for (const at of times) {
        read += 1;
        yield await Promise.resolve(entry(node, at));
      }
    }
    const merged = mergeByTime([source("a", [1, 4, 9]), source("b", []), source("c", [2, 3, 5, 6])]);
    const seen: string[] = [];
    for await (const { node, message } of merged) {
      seen.push(`${node}${message}`);
      expect(read - seen.length).to.be.lessThan(3);
    }
    expect(seen).to.deep.equal(["a1", "c2", "c3", "a4", "c5", "c6", "a9"]);
  });
});

describe("inOrder", () => {
  it("puts the entries of half a second in order", () => {
    const timers = new FakeTimers();
    const seen: string[] = [];
    const add = inOrder(({ message }) => seen.push(message), timers);
    for (const at of [5, 3, 7]) add(entry("a", at));
    timers.pass(499);
    expect(seen).to.deep.equal([]);
    timers.pass(1);
    add(entry("b", 4));
    timers.pass(500);
    expect([seen, timers.waiting]).to.deep.equal([["3", "5", "7", "4"], 0]);
  });
});

describe("journalText", () => {
  it("asks for the last 100 entries, unless a time is given", () => {
    expect(journalText({})).to.match(/'--lines=100'$/);
    expect(journalText({ unit: ["a b"], since: "-600000ms" })).to.match(
      /'--unit=a b' '--since=-600000ms' '--lines=all'$/,
    );
    expect(journalText({ since: "@1", follow: true })).to.match(/'--lines=all' --follow$/);
    expect(journalText({ lines: 5, follow: true })).to.match(/'--lines=5' --follow$/);
  });

  it("counts behind a pattern by itself", () => {
    expect(journalText({ grep: "x'y" })).to.match(/'--grep=x'\\''y' \| tail -n 100$/);
  });
});
