import { createServer, type AddressInfo, type Server } from "node:net";
import { expect } from "chai";
import { factAssert } from "#engine/modules/fact-assert.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

describe("fact.assert", () => {
  let server: Server;
  let port: number;
  before((done) => {
    server = createServer((socket) => socket.destroy()).listen(0, "127.0.0.1", () => {
      port = (server.address() as AddressInfo).port;
      done();
    });
  });
  after((done) => void server.close(done));

  it("wants one fact a check, each ok", () => {
    const step = stepOf(factAssert, {
      that: [{ cpus: 2 }, { freeSpace: { path: "/var", min: "1G" } }, { portFree: { port: 22 } }],
    });
    expect(step.want).to.deep.equal({ processors: "ok", "free space /var": "ok", "port 22 free": "ok" });
    expect(step.apply).to.equal(undefined);
  });

  it("refuses unknown checks, two in one entry, and no check at all", () => {
    for (const that of [
      [],
      [{ cpu: 1 }],
      [{ cpus: 1, memory: 1 }],
      [{ route: { to: "a.b" } }],
      [{ kernelMin: "$(id)" }],
    ])
      expect(factAssert.args.safeParse({ that }).success, JSON.stringify(that)).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      const run = (that: object[], bin: Record<string, string> = {}, env: Record<string, string> = {}) =>
        runStepOn(shell, stepOf(factAssert, { that }), { bin, env });

      it("holds on this machine", async () => {
        const now = Math.floor(Date.now() / 1000);
        const done = await run([
          { os: { id: ["debian", "ubuntu"], version: ["12", "13"] } },
          { arch: ["amd64", "arm64"] },
          { cpus: 1 },
          { memory: "64M" },
          { freeSpace: { path: "/var/lib/not/there", min: "1M" } },
          { command: ["sh", "ls"] },
          { clock: { now } },
          { portFree: { port: 1 } },
          { tcp: { host: "127.0.0.1", port } },
          { root: true },
          { kernelMin: "3.10" },
          { packagesAbsent: ["no-such-package"] },
          { servicesAbsent: ["no-such-unit"] },
        ]);
        expect([done.outcome, done.problem], JSON.stringify(done)).to.deep.equal(["ok", undefined]);
      });

      it("collects every problem with what was found", async () => {
        const done = await run([
          { os: { id: "nixos" } },
          { arch: "m68k" },
          { cpus: 5000 },
          { memory: "900T" },
          { freeSpace: { path: "/var", min: "900P" } },
          { diskCount: 5000 },
          { command: ["sh", "no-such-command"] },
          { clock: { now: 1000 } },
          { portFree: { port } },
          { tcp: { host: "127.0.0.1", port: 1 } },
          { kernelMin: "99.1" },
        ]);
        expect(done.outcome).to.equal("failed");
        expect(done.have["operating system"]).to.match(/^is Debian.*, not nixos$/);
        expect(done.have["architecture"]).to.match(/^is (x86_64|aarch64), not m68k$/);
        expect(done.have["processors"]).to.match(/^\d+, at least 5000 are needed$/);
        expect(done.have["memory"]).to.match(/^\d+ MiB, at least \d+ MiB are needed$/);
        expect(done.have["free space /var"]).to.match(/^\d+ MiB on \/var, at least/);
        expect(done.have["disks"]).to.match(/at least 5000/);
        expect(done.have["command sh no-such-command"]).to.equal("not there: no-such-command");
        expect(done.have["clock"]).to.match(/^\d+ s ahead of the bastion's, at most 300 s will do$/);
        expect(done.have[`port ${port} free`]).to.match(new RegExp(`^taken by .* \\(pid ${process.pid}`));
        expect(done.have["connection to 127.0.0.1:1"]).to.equal("no connection");
        expect(done.have["kernel"]).to.match(/^is .*, at least 99.1 is needed$/);
      });

      it("lets our own program keep its port", async () => {
        const taken = (await run([{ portFree: { port } }])).have[`port ${port} free`] ?? "";
        const owner = /^taken by (\S+) \(pid/.exec(taken)?.[1] ?? "";
        expect((await run([{ portFree: { port, unlessOwner: owner } }])).outcome, taken).to.equal("ok");
      });

      it("warns of a small skew and takes the engine's time where no other is given (F-7)", async () => {
        const now = Math.floor(Date.now() / 1000);
        const done = await run([{ clock: {} }], {}, { K_NOW: String(now - 60) });
        expect([done.outcome, done.notes.length], JSON.stringify(done)).to.deep.equal(["ok", 1]);
        expect((await run([{ clock: { now: new Date(0).toISOString() } }])).outcome).to.equal("failed");
        expect((await run([{ clock: {} }])).have["clock"]).to.contain("not known");
      });

      it("finds packages and services that must not be there", async () => {
        const done = await run([{ packagesAbsent: "dash" }, { servicesAbsent: "demo" }], {
          "dpkg-query": "echo installed",
          systemctl: "echo ActiveState=active; echo UnitFileState=disabled",
        });
        expect(done.have).to.deep.equal({
          "absent packages dash": "installed: dash",
          "absent services demo.service": "active or enabled: demo.service",
        });
      });
    });

  it("leaves out what `when` says, and takes lists of addresses and endpoints", () => {
    const { want } = stepOf(factAssert, {
      that: [
        { root: true },
        { timeSync: true, when: false },
        { cpus: 1, when: true },
        { route: { to: ["192.0.2.1", "192.0.2.2"] } },
        { tcp: [{ host: "a", port: 1 }] },
        { tcp: [] },
      ],
    });
    expect(Object.keys(want)).to.deep.equal([
      "root",
      "processors",
      "route to 192.0.2.1",
      "route to 192.0.2.2",
      "connection to a:1",
    ]);
  });
});
