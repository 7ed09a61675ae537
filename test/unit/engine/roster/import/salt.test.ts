import { expect } from "chai";
import { imported } from "#support/imported.ts";
import { problemsIn } from "#support/problems.ts";

describe("the import of a Salt roster", () => {
  it("converts logins, grains and jump hosts", () => {
    const { roster, formats, leftOut } = imported(`web1: web1.example.net.
db1:
  host: 192.0.2.7
  user: ops
  port: 2222
  sudo: yes
  priv: /srv/keys/db
  minion_opts:
    grains: { roles: [db], rack: 4 }
  ssh_options:
    - ProxyJump=gw.example.net
db2: { host: 192.0.2.8, priv: agent-forwarding }
`);
    expect([formats, leftOut]).to.deep.equal([["salt"], []]);
    expect(roster.nodes.get("web1")).to.include({ address: "web1.example.net", user: "root" });
    expect(roster.nodes.get("db1")).to.deep.include({
      address: "192.0.2.7",
      user: "ops",
      port: 2222,
      identityFile: "/srv/keys/db",
      jump: ["gw.example.net"],
      vars: { grains: { roles: ["db"], rack: 4 } },
    });
    expect(roster.nodes.get("db2")).not.to.have.property("identityFile");
  });

  it("reports each omitted key, and shows no password", () => {
    const { leftOut, text } = imported(`n1:
  host: 192.0.2.1
  passwd: Top5ecret
  tty: True
  timeout: 30
  thin_dir: /opt/thin
  minion_opts: { log_level: debug }
  sudo_user: app
  constructor: 1
n2: {user: root}
n3: [192.0.2.3]
n4: { host: 192.0.2.1 }
`);
    expect(leftOut.map((line) => line.split(":")[0]).join(", ")).to.equal(
      "3 passwd, 4 tty, 5 timeout, 6 thin_dir, 7 minion_opts.log_level, 8 sudo_user, 9 constructor, " +
        "10 the node n2, 11 the target n3, 12 the node n4",
    );
    expect(leftOut.at(-1)).to.contain("it is the same machine as n1");
    expect(text + leftOut.join("")).not.to.contain("Top5ecret");
  });

  it("refuses a roster with a renderer, with the line", () => {
    const hint =
      "import what it renders to: salt-call --local slsutil.renderer PATH --out yaml | kcore roster import --from salt -";
    expect(problemsIn(() => imported("# {{ no }}\na: { host: 192.0.2.1 }\n{% for i in [1] %}\n"))).to.deep.equal([
      `given:3:1+1 given is a template of Jinja [ROSTER_IMPORT] | ${hint}`,
    ]);
    expect(problemsIn(() => imported("#!py\ndef run(): return {}\n"))).to.deep.equal([
      `given:1:1+1 given is written for Salt's renderer “py” [ROSTER_IMPORT] | ${hint}`,
    ]);
  });
});
