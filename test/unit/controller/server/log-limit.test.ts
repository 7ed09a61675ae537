import { expect } from "chai";
import { createLog } from "#api/log.ts";
import { limitWarnings } from "#controller/server/log-limit.ts";

describe("warnings about callers in the log", () => {
  let now: number;
  let lines: Record<string, unknown>[];
  let warn: (message: string, fields?: Readonly<Record<string, unknown>>) => void;

  beforeEach(() => {
    now = 0;
    lines = [];
    const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>);
    ({ warn } = limitWarnings(createLog({ write, clock: () => 0 }), () => now));
  });

  it("S-17: are limited per address, and the next one has the number of those left out", () => {
    for (let attempt = 0; attempt < 10_000; attempt++) warn("refused", { from: "192.0.2.1" });
    expect(lines).to.have.length(100);
    now = 1_000;
    warn("refused", { from: "192.0.2.1" });
    expect(lines).to.have.length(101);
    expect(lines.at(-1)).to.include({ unwritten: 9_900 });
  });

  it("S-17: are limited for each message and address apart, and for all together", () => {
    for (let attempt = 0; attempt < 10_000; attempt++) warn("refused", { from: "192.0.2.1" });
    warn("refused", { from: "192.0.2.2" });
    warn("denied", { from: "192.0.2.1" });
    warn("refused", { reason: "a peer's" });
    expect(lines).to.have.length(103);
    for (let host = 0; host < 10_000; host++) warn("refused", { from: `2001:db8::${host.toString(16)}` });
    expect(lines.length).to.be.lessThan(1_100);
  });
});
