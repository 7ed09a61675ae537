import { createServer, type Server } from "node:net";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { portOpen } from "#engine/modules/port-open.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

describe("port.open", () => {
  let server: Server;
  let port: number;
  before((done) => {
    server = createServer((socket) => socket.destroy()).listen(0, "0.0.0.0", () => {
      port = (server.address() as AddressInfo).port;
      done();
    });
  });
  after((done) => void server.close(done));
  // Dry runs look once.

  it("wants the port open and tries for a minute", () => {
    const { want, retry, apply } = stepOf(portOpen, { port: 9090 });
    expect([want, retry, apply]).to.deep.equal([
      { "127.0.0.1:9090": "open" },
      { attempts: 31, interval: 2 },
      undefined,
    ]);
  });

  it("refuses what is no port and no host", () => {
    for (const args of [{ port: 0 }, { port: 65_536 }, { port: 1, host: "-e" }, { port: 1, host: "a b" }])
      expect(portOpen.args.safeParse(args).success, JSON.stringify(args)).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      it("reads the kernel's table for this node", async () => {
        expect((await runStepOn(shell, stepOf(portOpen, { port }))).outcome).to.equal("ok");
        expect(
          (await runStepOn(shell, stepOf(portOpen, { port, state: "closed" }), { dryRun: true })).outcome,
        ).to.equal("failed");
      });

      it("says that a port is closed", async () => {
        const run = await runStepOn(shell, stepOf(portOpen, { port: 1 }), { dryRun: true });
        expect([run.outcome, run.have]).to.deep.equal(["failed", { "127.0.0.1:1": "closed" }]);
      });

      it("connects to other addresses with what is there", async () => {
        expect((await runStepOn(shell, stepOf(portOpen, { port, host: "127.0.0.2" }))).outcome).to.equal("ok");
        const run = await runStepOn(shell, stepOf(portOpen, { port: 1, host: "127.0.0.2" }), { dryRun: true });
        expect(run.have).to.deep.equal({ "127.0.0.2:1": "closed" });
      });
    });
});
