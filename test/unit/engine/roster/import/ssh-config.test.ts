import { expect } from "chai";
import { hopsOfCommand, splitWords } from "#engine/roster/import/ssh-options.ts";
import { imported } from "#support/imported.ts";

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
  it("gives each host that is named the first value of all that match it", () => {
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

  it("tells what is left out, once where it stands", () =>
    expect(imported(config).leftOut).to.deep.equal([
      "1 Include more/*: there is no such file to read",
      "12 ProxyCommand nc -X 5 %h %p: only hops over SSH are known: jump: [HOST]",
      "13 the host code: a server of Git, where nothing can be run",
      '17 Match exec "test -f /etc/x": only “all”, “host” and “originalhost” are known without a connection',
      "22 ForwardAgent yes: kcore forwards nothing",
      "23 StrictHostKeyChecking no: a host's key is always verified: kcore roster trust NODE",
    ]));

  it("takes names of one machine for one node, whose other names are ways to it, too", () => {
    const { roster, leftOut } = imported(
      "Host a alias\n  HostName 192.0.2.1\n  User u\nHost b\n  HostName 192.0.2.2\n  User u\n  ProxyJump alias\n",
    );
    expect(roster.nodes.get("b")?.jump).to.deep.equal(["a"]);
    expect(leftOut).to.deep.equal(["1 the node alias: it is the same machine as a"]);
  });

  it("does not lead a jump host over itself", () => {
    const { roster } = imported("Host gw\n  User u\nHost n1\n  User u\nHost *\n  ProxyJump gw\n");
    expect([roster.nodes.get("gw")?.jump, roster.nodes.get("n1")?.jump]).to.deep.equal([[], ["gw"]]);
  });

  it("knows a jump host in a ProxyCommand, and splits words as a shell does", () => {
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
