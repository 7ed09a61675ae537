import { EventEmitter } from "node:events";
import type { Server } from "node:https";
import { expect } from "chai";
import { limitHandshakes } from "#controller/server/handshake-limits.ts";

class Knock extends EventEmitter {
  static ports = 1;
  readonly remoteAddress: string;
  readonly remotePort = Knock.ports++;
  destroyed = false;

  constructor(remoteAddress: string) {
    super();
    this.remoteAddress = remoteAddress;
  }

  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.emit("close");
  }
}

describe("the door of a server", () => {
  const limits = { pendingPerAddress: 2, pending: 3, waitingPerAddress: 2, waiting: 3 };
  let now: number;
  let server: EventEmitter;
  let begun: Knock[];
  let close: () => void;

  beforeEach(() => {
    now = 0;
    begun = [];
    server = new EventEmitter();
    server.on("connection", (socket: Knock) => begun.push(socket));
    ({ close } = limitHandshakes(server as Server, limits, () => now));
  });
  afterEach(() => close());

  const knock = (address: string): Knock => {
    const socket = new Knock(address);
    server.emit("connection", socket);
    return socket;
  };

  it("S-17: lets the first of an address begin, has the next ones wait, and resets who is more than that", () => {
    const [a, b, c, d, e] = Array.from({ length: 5 }, () => knock("x"));
    expect(begun).to.deep.equal([a, b]);
    expect([c, d, e].map((one) => one?.destroyed)).to.deep.equal([false, false, true]);
    server.emit("secureConnection", b);
    expect(begun).to.deep.equal([a, b, c]);
    a?.destroy();
    expect(begun).to.deep.equal([a, b, c, d]);
  });

  it("S-17: takes room from the busiest address at once for another one, and from the same when it has stood still", () => {
    const [a, b] = [knock("x"), knock("x")];
    const other = knock("y");
    const third = knock("z");
    expect(begun).to.deep.equal([a, b, other, third]);
    expect(a.destroyed).to.equal(true);
    const late = knock("x");
    expect(begun).not.to.include(late);
    now += 4_000;
    const [, again] = [knock("x"), knock("y")];
    expect(b.destroyed || other.destroyed).to.equal(true);
    expect(again.destroyed).to.equal(false);
  });

  it("forgets who left while waiting", () => {
    const [a, , c, d] = Array.from({ length: 4 }, () => knock("x"));
    c?.destroy();
    server.emit("secureConnection", a);
    expect(begun.at(-1)).to.equal(d);
    expect(knock("x").destroyed).to.equal(false);
    close();
  });
});
