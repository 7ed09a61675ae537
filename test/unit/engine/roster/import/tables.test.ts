import { expect } from "chai";
import { imported } from "#support/imported.ts";
import { problemsIn } from "#support/problems.ts";

describe("the import of a table", () => {
  it("reads quoted cells, other separators and columns by their usual names", () => {
    const { roster, leftOut, formats } = imported(`Name;IP address;User;Port;Roles;Labels;vars.rack;Password
n1;192.0.2.1;ops;2222;"worker infra";"tier=ssd
zone=a";"a ""b"";c";Top5ecret

n2;n2.example.net;;;controller;;;
`);
    expect(formats).to.deep.equal(["csv"]);
    expect(roster.nodes.get("n1")).to.deep.include({
      address: "192.0.2.1",
      user: "ops",
      port: 2222,
      roles: ["worker", "infra"],
      labels: { tier: "ssd", zone: "a" },
      vars: { rack: 'a "b";c' },
    });
    expect(roster.nodes.get("n2")).to.deep.include({ address: "n2.example.net", roles: ["controller"] });
    expect(leftOut).to.deep.equal([
      "1 the column “Password”: passwords; kcore roster trust --deploy-key puts a key there by one",
    ]);
  });

  it("reports a wrong cell with its line, and refuses a table without names", () => {
    const { leftOut } = imported("name,address,port,colour\nn1,192.0.2.1,70000,red\n,,22,red\nn1,192.0.2.9,,\n");
    expect(leftOut).to.deep.equal([
      "1 the column “colour”: no such column is known; vars.NAME and labels.NAME keep a value",
      "2 port: no value that a roster takes there",
      "3 a line: it names no node",
      "4 the node n1: it was met before, at given:2",
    ]);
    expect(problemsIn(() => imported("a,b\n1,2\n", { from: "csv" }))[0]).to.contain("no column “name” or “address”");
    expect(problemsIn(() => imported('name,address\nn1,"192.0.2.1\nn2,\n'))[0]).to.contain(
      "a quote that is not closed",
    );
  });

  it("reports omissions by file, in the order of lines", () => {
    const files = {
      one: "name,address,port\ntwin,192.0.2.1,\nn1,192.0.2.2,70000\n",
      two: "name,address,port\nn2,192.0.2.3,70000\n",
    };
    const { leftOut } = imported(files, { there: "nodes: { n0: { address: 192.0.2.1 } }\n" });
    expect(leftOut).to.deep.equal([
      "2 the node twin: it is in the roster already, at roster/there.yaml:1",
      "3 port: no value that a roster takes there",
      "two:2 port: no value that a roster takes there",
    ]);
  });
});

describe("the import of Terraform's outputs", () => {
  const output = (value: unknown, sensitive = false): unknown => ({ sensitive, type: "string", value });

  it("converts a map of names to addresses or objects", () => {
    const nodes = {
      n1: "192.0.2.1",
      n2: { public_ip: "192.0.2.2", user: "ops", port: "2222", roles: ["worker"], zone: "a", jump: "gw.example.net" },
    };
    const { roster, leftOut, formats } = imported(
      JSON.stringify({ nodes: output(nodes), vpc: output("vpc-1"), key: output("x", true) }, undefined, 1),
    );
    expect(formats).to.deep.equal(["terraform"]);
    const n2 = { address: "192.0.2.2", user: "ops", port: 2222, roles: ["worker"], jump: ["gw.example.net"] };
    expect(roster.nodes.get("n2")).to.deep.include(n2);
    expect(leftOut.map((line) => line.replace(/^\d+ /, ""))).to.deep.equal([
      "zone: no key of a node; vars keeps values",
      "the output vpc: the nodes are those of another output",
      "the output key: it is sensitive",
    ]);
    expect(imported(JSON.stringify({ n1: "192.0.2.1" })).roster.nodes.get("n1")?.address).to.equal("192.0.2.1");
  });

  it("takes a map without IP addresses as nodes only in the output kcore_nodes", () => {
    const tags = { env: "prod", owner: "shop" };
    const { roster, leftOut } = imported(JSON.stringify({ tags: output(tags), hosts: output({ n1: "192.0.2.1" }) }));
    expect([...roster.nodes.keys()]).to.deep.equal(["n1"]);
    expect(leftOut.join()).to.include("the output tags: it is no map of names to IP addresses");
    const named = imported(JSON.stringify({ kcore_nodes: output({ n1: "n1.example.org" }) }));
    expect(named.roster.nodes.get("n1")?.address).to.equal("n1.example.org");
  });

  it("refuses outputs without nodes, with an example", () =>
    expect(problemsIn(() => imported(JSON.stringify({ a: output("x") })))).to.deep.equal([
      'given:1:1+53 given has no output that is a map of nodes [ROSTER_IMPORT] | output "kcore_nodes" { value = { n1 = "192.0.2.11", n2 = { address = "192.0.2.12", user = "ops" } } }',
    ]));
});

describe("an import beside a roster", () => {
  it("omits names, machines and groups that the roster has", () => {
    const there =
      "groups:\n  web: { vars: { a: 1 } }\nnodes:\n  n1: { address: 192.0.2.1 }\n  x: { address: 192.0.2.3 }\n";
    const { roster, leftOut } = imported(
      "[web]\nn1\nn2 ansible_host=192.0.2.2 ansible_user=u\nn3 ansible_host=192.0.2.3\n[web:vars]\na=2\n",
      { there },
    );
    expect([...roster.nodes.keys()]).to.deep.equal(["n1", "x", "n2"]);
    expect(roster.nodes.get("n2")).to.deep.include({ groups: ["web"], vars: { a: 1 } });
    expect(leftOut).to.deep.equal([
      "1 the group web: the roster has one of this name: its keys stay as they are",
      "2 the node n1: it is in the roster already, at roster/there.yaml:4",
      "4 the node n3: it is in the roster already, at roster/there.yaml:5",
    ]);
  });

  it("recognizes each file's format, and refuses a file of unknown format", () => {
    const { roster, formats } = imported({
      a: "Host a\n  User u\n",
      b: "name,address\nb,192.0.2.2\n",
      c: "c: { host: 192.0.2.3 }\n",
    });
    expect(formats).to.deep.equal(["ssh-config", "csv", "salt"]);
    expect([...roster.nodes.keys()]).to.deep.equal(["a", "b", "c"]);
    expect(problemsIn(() => imported("# nothing\n"))).to.deep.equal([
      "the format of given cannot be told from its content [ROSTER_IMPORT] | say it: --from salt | ansible | ssh-config | terraform | csv",
    ]);
  });
});
