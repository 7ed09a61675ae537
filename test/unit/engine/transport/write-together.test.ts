import { Duplex } from "node:stream";
import { expect } from "chai";
import { writeTogether } from "#engine/transport/write-together.ts";

/** A socket that records the bytes of each write call. */
function recordingSocket() {
  const calls: string[] = [];
  const socket = new Duplex({
    read: () => undefined,
    write: (chunk: Buffer, _encoding, done) => done(void calls.push(chunk.toString())),
    writev: (chunks, done) => done(void calls.push(chunks.map(({ chunk }) => String(chunk)).join("+"))),
  });
  writeTogether(socket);
  return { socket, calls };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("writeTogether", () => {
  it("sends all writes of one turn in one call", async () => {
    const { socket, calls } = recordingSocket();
    for (const part of ["length", "body", "tag", "length", "body", "tag"]) socket.write(part);
    await turn();
    socket.write("later");
    await turn();
    expect(calls).to.deep.equal(["length+body+tag+length+body+tag", "later"]);
  });
});
