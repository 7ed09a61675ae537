import { expect } from "chai";
import { createSocket, type Socket } from "node:dgram";
import { candidateNames, createNameResolver, parseHosts } from "#engine/transport/dns.ts";
import { eventually } from "#support/cluster.ts";
import { codeOf, rejectionOf } from "#support/rejection.ts";

const none = { hostsFile: "/nonexistent", resolvConf: "/nonexistent" };

describe("name resolution", () => {
  let silent: Socket;
  let servers: string[];
  let queries = 0;
  before(async () => {
    silent = createSocket("udp4").on("message", () => queries++);
    await new Promise<void>((resolve) => silent.bind(0, "127.0.0.1", resolve));
    servers = [`127.0.0.1:${silent.address().port}`];
  });
  after(() => silent.close());
  beforeEach(() => (queries = 0));

  it("returns addresses unchanged, without DNS (F-9)", async () => {
    const names = createNameResolver({ ...none, servers });
    expect(await names.resolve("192.0.2.1")).to.deep.equal(["192.0.2.1"]);
    expect([await names.resolve("fe80::1%eth0"), queries]).to.deep.equal([["fe80::1%eth0"], 0]);
  });

  it("queries all names at once, so that a dead name server costs one deadline (F-9)", async () => {
    const names = createNameResolver({ ...none, servers });
    let failed = 0;
    for (let index = 0; index < 200; index++) names.resolve(`n${index}.example`).catch(() => failed++);
    await eventually(() => queries >= 200);
    expect(failed).to.equal(0);
  });

  it("fails with DNS_FAILED after the deadline when the name server is dead (F-9)", async () => {
    const error = await rejectionOf(createNameResolver({ ...none, servers, deadline: 60 }).resolve("n1.example"));
    expect(await codeOf(Promise.reject(error))).to.equal("DNS_FAILED");
    expect(error.message).to.include("DNS finds no address for “n1.example”: nothing within 0.06 s");
    expect(error.exitCode).to.equal(3);
  });

  it("does not call the system's resolver, which blocks a thread, after the deadline (F-9)", async () => {
    let asked = 0;
    const system = () => Promise.resolve((asked++, ["192.0.2.7"]));
    const names = createNameResolver({ ...none, servers, deadline: 20, system });
    expect(await codeOf(names.resolve("n1.example"))).to.equal("DNS_FAILED");
    await new Promise(setImmediate);
    expect(asked).to.equal(0);
  });

  it("queries a name once a run", async () => {
    let asked = 0;
    const system = () => Promise.resolve((asked++, ["192.0.2.7"]));
    const names = createNameResolver({ ...none, servers: ["127.0.0.1:9"], system });
    const found = await Promise.all([names.resolve("n1"), names.resolve("n1")]);
    expect([...found, await names.resolve("n1")]).to.deep.equal([["192.0.2.7"], ["192.0.2.7"], ["192.0.2.7"]]);
    expect(asked).to.equal(1);
  });

  it("queries a name again after a failure", async () => {
    let alive = false;
    const system = () => (alive ? Promise.resolve(["192.0.2.7"]) : Promise.reject(new Error("down")));
    const names = createNameResolver({ ...none, servers: ["127.0.0.1:9"], system });
    expect(await codeOf(names.resolve("n1"))).to.equal("DNS_FAILED");
    alive = true;
    expect(await names.resolve("n1")).to.deep.equal(["192.0.2.7"]);
  });

  it("reads all addresses of a name from hosts(5)", () => {
    const hosts = parseHosts("127.0.0.1 localhost # me\n::1\tlocalhost ip6-localhost\n#1.2.3.4 x\nnonsense y\n");
    expect(hosts.get("localhost")).to.deep.equal(["127.0.0.1", "::1"]);
    expect([...hosts.keys()]).to.deep.equal(["localhost", "ip6-localhost"]);
  });

  it("completes names as resolv.conf(5) does", () => {
    const conf = "nameserver 192.0.2.1\ndomain old.example\nsearch a.example b.example.\noptions ndots:2 timeout:1\n";
    expect(candidateNames("n1", conf)).to.deep.equal(["n1.a.example", "n1.b.example", "n1"]);
    expect(candidateNames("n1.x.y", conf)).to.deep.equal(["n1.x.y", "n1.x.y.a.example", "n1.x.y.b.example"]);
    expect([candidateNames("n1.", conf), candidateNames("n1", "")]).to.deep.equal([["n1"], ["n1"]]);
  });
});
