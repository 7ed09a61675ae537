import { EventEmitter } from "node:events";
import type { Server } from "node:https";
import { expect } from "chai";
import { limitHandshakes } from "#controller/server/handshake-limits.ts";

class FakeSocket extends EventEmitter {
  static ports = 1;
  readonly remoteAddress: string;
  readonly remotePort = FakeSocket.ports++;
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

describe("the limits of handshakes", () => {
  const limits = { pendingPerAddress: 2, pending: 3, waitingPerAddress: 2, waiting: 3 };
  let now: number;
  let server: EventEmitter;
  let begun: FakeSocket[];
  let close: () => void;

  beforeEach(() => {
    now = 0;
    begun = [];
    server = new EventEmitter();
    server.on("connection", (socket: FakeSocket) => begun.push(socket));
    ({ close } = limitHandshakes(server as Server, limits, () => now));
  });
  afterEach(() => close());

  const connect = (address: string): FakeSocket => {
    const socket = new FakeSocket(address);
    server.emit("connection", socket);
    return socket;
  };

  it("S-17: begin an address's first connections, queue the next, and reset further ones", () => {
    const [a, b, c, d, e] = Array.from({ length: 5 }, () => connect("x"));
    expect(begun).to.deep.equal([a, b]);
    expect([c, d, e].map((one) => one?.destroyed)).to.deep.equal([false, false, true]);
    server.emit("secureConnection", b);
    expect(begun).to.deep.equal([a, b, c]);
    a?.destroy();
    expect(begun).to.deep.equal([a, b, c, d]);
  });

  it("S-17: close a connection of the busiest address for another address, and stalled ones of any address", () => {
    const [a, b] = [connect("x"), connect("x")];
    const other = connect("y");
    const third = connect("z");
    expect(begun).to.deep.equal([a, b, other, third]);
    expect(a.destroyed).to.equal(true);
    const late = connect("x");
    expect(begun).not.to.include(late);
    now += 4_000;
    const [, again] = [connect("x"), connect("y")];
    expect(b.destroyed || other.destroyed).to.equal(true);
    expect(again.destroyed).to.equal(false);
  });

  it("drop a queued connection that was closed", () => {
    const [a, , c, d] = Array.from({ length: 4 }, () => connect("x"));
    c?.destroy();
    server.emit("secureConnection", a);
    expect(begun.at(-1)).to.equal(d);
    expect(connect("x").destroyed).to.equal(false);
    close();
  });
});
