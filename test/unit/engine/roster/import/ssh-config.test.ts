import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { hopsOfCommand, splitWords } from "#engine/roster/import/ssh-options.ts";
import { imported } from "#support/imported.ts";
import { problemsIn } from "#support/problems.ts";

const config = `Include more/*
Host gw  # the way in
  HostName=gw.example.net
  User ops
Host web1 web2 !web9
  HostName %h.example.net
  ProxyJump gw,hop@192.0.2.99:2200
Host old
  HostName 192.0.2.5
  ProxyCommand ssh -q -W %h:%p gw
Host odd
  ProxyCommand nc -X 5 %h %p
Host code
  HostName github.com
Match host *.example.net
  Port 2222
Match exec "test -f /etc/x"
  User nobody
Host *
  User deploy
  IdentityFile "~/.ssh/the key"
  ForwardAgent yes
  StrictHostKeyChecking no
`;

describe("the import of an ssh_config", () => {
  it("gives each named host the first value of its matching sections", () => {
    const { roster, formats } = imported(config, { beside: { "more/*": "Host web2\n  User first\n" } });
    expect(formats).to.deep.equal(["ssh-config"]);
    const nodes = [...roster.nodes.values()];
    expect(nodes.map(({ name, address, user, port, jump }) => [name, address, user, port, jump])).to.deep.equal([
      ["web2", "web2.example.net", "first", 2222, ["gw", "192.0.2.99"]],
      ["gw", "gw.example.net", "ops", 2222, []],
      ["web1", "web1.example.net", "deploy", 2222, ["gw", "192.0.2.99"]],
      ["old", "192.0.2.5", "deploy", 22, ["gw"]],
      ["odd", "odd", "deploy", 22, []],
    ]);
    expect(roster.nodes.get("gw")?.identityFile).to.equal("/home/op/.ssh/the key");
    expect(roster.jumps.get("192.0.2.99")).to.include({ user: "hop", port: 2200 });
  });

  it("reports each omitted line once", () =>
    expect(imported(config).leftOut).to.deep.equal([
      "1 Include more/*: there is no such file to read",
      "12 ProxyCommand nc -X 5 %h %p: only hops over SSH are known: jump: [HOST]",
      "13 the host code: a server of Git, where nothing can be run",
      '17 Match exec "test -f /etc/x": an import runs no command',
      "22 ForwardAgent yes: kcore forwards nothing",
      "23 StrictHostKeyChecking no: a host's key is always verified: kcore roster trust NODE",
    ]));

  it("makes one node of two names of a machine, and resolves the omitted name as a jump host", () => {
    const { roster, leftOut } = imported(
      "Host a alias\n  HostName 192.0.2.1\n  User u\nHost b\n  HostName 192.0.2.2\n  User u\n  ProxyJump alias\n",
    );
    expect(roster.nodes.get("b")?.jump).to.deep.equal(["a"]);
    expect(leftOut).to.deep.equal(["1 the node alias: it is the same machine as a"]);
  });

  it("runs no command of a config", () => {
    const marker = join(tmpdir(), `kcore-import-ran-${process.pid}`);
    const lines = [
      'Match exec "X"',
      'Match host a e"xe"c "X"',
      "Match !exec=X",
      '"Match" exec "X"',
      "Match all exec X",
      "Match all # exec X",
    ];
    const hidden = { hidden: `Match exec "touch ${marker}"\n` };
    const text = `Host a\n  User u\nInclude hidden\n${lines.join("\n  Port 1\n").replaceAll("X", `touch ${marker}`)}\n`;
    const { roster, leftOut } = imported(text, { beside: hidden });
    expect(existsSync(marker)).to.equal(false);
    expect(roster.nodes.get("a")).to.include({ user: "u", port: 22 });
    expect(leftOut.filter((line) => line.endsWith("an import runs no command"))).to.have.lengthOf(6);
  });

  it("reads a plain config itself where ssh is missing, with a note, and refuses other lines", () => {
    const plain = "Host gw\n  HostName 192.0.2.9\n  User ops\nHost web1\n  ProxyJump gw\nHost *\n  User deploy\n";
    const { roster, ownReader } = imported(plain, { withSsh: false });
    expect(ownReader).to.deep.equal([{ file: "given", missing: "ssh" }]);
    expect(
      [...roster.nodes.values()].map(({ name, address, user, jump }) => [name, address, user, jump]),
    ).to.deep.equal([
      ["gw", "192.0.2.9", "ops", []],
      ["web1", "web1", "deploy", ["gw"]],
    ]);
    expect(imported(plain).ownReader).to.deep.equal([]);
    const lines = problemsIn(() => imported(config, { withSsh: false })).map((line) => line.split(" ")[0]);
    expect(lines).to.deep.equal(["given:1:1+1", "given:5:1+1", "given:6:3+1", "given:15:1+1", "given:21:3+1"]);
  });

  it("omits a host that ssh refuses, such as one that jumps over itself", () => {
    const { roster, leftOut } = imported("Host gw\n  User u\nHost n1\n  User u\nHost *\n  ProxyJump gw\n");
    expect([...roster.nodes.keys()]).to.deep.equal(["n1"]);
    expect(leftOut).to.deep.equal(["1 the host gw: ssh -G refuses it"]);
  });

  it("finds jump hosts in a ProxyCommand, and splits words as a shell does", () => {
    expect(hopsOfCommand("ssh -i ~/.ssh/k -p 2200 -l ops gw nc %h %p")).to.deep.equal([
      { host: "gw", user: "ops", port: 2200, identityFile: "~/.ssh/k" },
    ]);
    expect(hopsOfCommand("/usr/bin/ssh -W %h:%p -J a,b c")).to.deep.equal([
      { host: "a" },
      { host: "b" },
      { host: "c" },
    ]);
    expect(hopsOfCommand("ssh -F other -W %h:%p gw")).to.equal(undefined);
    expect(hopsOfCommand("connect -H proxy:80 %h %p")).to.equal(undefined);
    expect(splitWords(`a "b c" 'd "e"' f\\ g h"i"j`)).to.deep.equal(["a", "b c", 'd "e"', "f g", "hij"]);
  });
});
