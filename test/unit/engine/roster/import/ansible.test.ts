import { expect } from "chai";
import { imported } from "#support/imported.ts";
import { problemsIn } from "#support/problems.ts";

const ini = `# the fleet
lone.example.net:2222

[web]
web[01:03:2].example.net ansible_user=deploy http_port=80   ; not a comment
[db]
db-[a:b] ansible_host=192.0.2.9 ansible_become=yes # one machine, twice
[site:children]
web
db
[site:vars]
ansible_ssh_common_args='-o ProxyJump=ops@gw.example.net:2200 -o StrictHostKeyChecking=no'
servers=['a', 'b']
enabled=True
label=True story
[all:vars]
ansible_ssh_private_key_file=~/.ssh/fleet
`;

describe("the import of an Ansible inventory", () => {
  it("expands ranges, keeps variables, and gives groups their groups' places: the deepest one wins", () => {
    const { roster, formats } = imported(ini);
    expect(formats).to.deep.equal(["ansible"]);
    expect([...roster.nodes.keys()]).to.deep.equal(
      "lone.example.net web01.example.net web03.example.net db-a".split(" "),
    );
    const { vars, ...web } = roster.nodes.get("web03.example.net") ?? {};
    expect(web).to.deep.include({
      address: "web03.example.net",
      user: "deploy",
      port: 22,
      groups: ["site", "web"],
      identityFile: "/home/op/.ssh/fleet",
      jump: ["gw.example.net"],
    });
    expect(vars).to.deep.equal({ servers: ["a", "b"], enabled: true, label: "True story", http_port: 80 });
    expect(roster.nodes.get("lone.example.net")?.port).to.equal(2222);
    expect(roster.jumps.get("gw.example.net")).to.include({ address: "gw.example.net", user: "ops", port: 2200 });
    expect(roster.nodes.get("db-a")).to.deep.include({ address: "192.0.2.9", jump: ["gw.example.net"] });
  });

  it("tells what is left out, each with its line, and never shows a password", () => {
    const { leftOut, text } = imported(`[app]
a1 ansible_host=192.0.2.1 ansible_password=Top5ecret ansible_user=op
a2 ansible_host=192.0.2.2 ansible_connection=winrm
a3 ansible_host=192.0.2.3 ansible_become_method=su ansible_become=true
a4 ansible_host="{{ lookup('env', 'A4') }}"
a5 ansible_host=192.0.2.5 words that=say nothing
[app:vars]
ansible_python_interpreter=/usr/bin/python3
ansible_become_user=app
api_token=Top5ecret
url=http://{{ inventory_hostname }}/
`);
    expect(leftOut).to.deep.equal([
      "2 ansible_password: a password in the inventory; kcore roster trust --deploy-key puts a key there by it",
      "3 the host a2: it is reached by the connection plugin “winrm”, and kcore speaks SSH",
      "4 ansible_become_method=su: kcore becomes root by sudo alone",
      "4 the user of a3, a5: none is named: there it is your own name, here root; defaults: { user: … } says another",
      "5 ansible_host: it is an expression of Jinja",
      "5 the node a4: it has no address that can be used",
      "6 a word behind a5: a variable is NAME=VALUE, quoted if it has spaces",
      "8 ansible_python_interpreter: kcore needs no interpreter on nodes",
      "9 ansible_become_user=app: kcore works as root; a step's runAs names another user",
      "10 api_token: it looks like a secret, and a roster holds none: a state's parameter may refer to one",
      "11 url: an expression of Jinja; states have {{…}} of their own (docs/templates.md)",
    ]);
    expect(`${text}${leftOut.join("\n")}`).not.to.contain("Top5ecret");
  });

  it("reads YAML as PyYAML does, with merge keys, vaults and groups that are said elsewhere", () => {
    const { roster, leftOut } = imported(`all:
  vars: { ansible_user: ops, backup: yes, mode: 0644 }
  children:
    edge:
      children: { west: }
    west:
      hosts:
        w1: &w { ansible_host: 192.0.2.11, ansible_port: "2222" }
        w2: { <<: *w, ansible_host: 192.0.2.12, key: !vault "$ANSIBLE_VAULT;1.1" }
        local: { ansible_connection: local, note: null }
`);
    const { vars, ...w2 } = roster.nodes.get("w2") ?? {};
    expect(w2).to.deep.include({ address: "192.0.2.12", port: 2222, user: "ops", groups: ["edge", "west"] });
    expect(vars).to.deep.equal({ backup: true, mode: "0644" });
    expect(roster.nodes.get("local")).to.deep.include({ transport: "local", vars: { ...vars, note: null } });
    expect(leftOut).to.deep.equal(["9 key: it is encrypted by Ansible Vault"]);
  });

  it("takes what ansible-inventory --list prints, and the variables of files beside an inventory", () => {
    const list = `{
\t"_meta": { "hostvars": { "n1": { "ansible_host": "192.0.2.1", "rack": 7 }, "n2": {} } },
\t"all": { "children": ["ungrouped", "db"] },
\t"db": { "hosts": ["n1", "n2"], "vars": { "ansible_user": "pg" } }
}`;
    const { roster } = imported(list);
    const n1 = { address: "192.0.2.1", user: "pg", groups: ["db"], vars: { rack: 7 } };
    expect(roster.nodes.get("n1")).to.deep.include(n1);
    const beside = {
      "group_vars/db.yml": "ansible_user: pg\nsize: 3\n",
      "host_vars/n1.yml": "$ANSIBLE_VAULT;1.1;AES256\n61\n",
    };
    const other = imported("[db]\nn1\n", { beside });
    expect(other.roster.nodes.get("n1")).to.deep.include({ user: "pg", vars: { size: 3 } });
    expect(other.leftOut).to.deep.equal(["host_vars/n1.yml:1 host_vars/n1: it is encrypted by Ansible Vault"]);
  });

  it("sends the reader of a plugin's configuration to what the plugin finds", () =>
    expect(problemsIn(() => imported("plugin: amazon.aws.aws_ec2\nregions: [eu-west-1]\n"))).to.deep.equal([
      "given:1:9+18 given configures the inventory plugin “amazon.aws.aws_ec2”, and names no host [ROSTER_IMPORT] | import what it finds: ansible-inventory -i given --list | kcore roster import --from ansible -",
    ]));

  it("survives groups in circles and names that JavaScript knows", () => {
    const { roster, leftOut } = imported(
      "[a:children]\nb\n[b:children]\na\n[b]\nn1 constructor=1 ansible_user=x\n[constructor]\nn1\n",
    );
    expect(roster.nodes.get("n1")?.groups).to.deep.equal(["a", "b"]);
    expect(leftOut).to.deep.equal([
      "6 constructor: its value cannot stand in a roster",
      "7 the group “constructor”: a name is 1 to 63 letters, digits, “.”, “_” or “-”",
    ]);
  });
});

describe("what is read as Ansible reads it", () => {
  const vars = (text: string, beside: Readonly<Record<string, string>> = {}): Readonly<Record<string, unknown>> =>
    imported(text, { beside }).roster.nodes.get("web1")?.vars ?? {};

  it("O13: ends a line at a # outside quotes, and takes a comment in a section of variables only behind a literal", () => {
    const text = `[web]
web1 motd="Server # 1" short=a#b left=1
[web:vars]
count=1 # c
word=deploy # comment
quoted="Server # 2" # c
big=1_000
hex=0x10
`;
    expect(vars(text)).to.deep.equal({
      motd: "Server # 1",
      short: "a",
      count: 1,
      word: "deploy # comment",
      quoted: "Server # 2",
      big: 1000,
      hex: 16,
    });
  });

  it("O13: y and n are texts, as to PyYAML", () => {
    const given = vars("web:\n  hosts:\n    web1: { a: y, b: N, c: yes, d: off, e: [n, no] }\n");
    expect(given).to.deep.equal({ a: "y", b: "N", c: true, d: false, e: ["n", false] });
  });

  it("O13: group_vars/all goes over what the inventory says of a group, and under the group's own file", () => {
    const beside = { "group_vars/all.yml": "k: all\nk2: all\n", "group_vars/web.yml": "k2: file\n" };
    const given = vars("[web]\nweb1\n[web:vars]\nk=inventory\nk2=inventory\nk3=inventory\n", beside);
    expect(given).to.deep.equal({ k: "all", k2: "file", k3: "inventory" });
  });

  it("O13: group_vars of a group go over what the inventory says of the groups below it", () => {
    const inventory = "[cold]\nweb1\n[all:children]\nindex\n[index:children]\ncold\n[cold:vars]\nk=inventory\nown=1\n";
    expect(vars(inventory, { "group_vars/index.yml": "k: index\n" })).to.deep.equal({ k: "index", own: 1 });
    const beside = { "group_vars/index.yml": "k: index\n", "group_vars/cold.yml": "k: cold\n" };
    expect(vars(inventory, beside)).to.deep.equal({ k: "cold", own: 1 });
    const host = { "group_vars/index.yml": "k: index\n", "host_vars/web1.yml": "k: host\n" };
    expect(vars(inventory, host)).to.deep.equal({ k: "host", own: 1 });
  });

  it("O13: gives hosts of no group the variables of the group “ungrouped”", () => {
    const beside = { "group_vars/ungrouped.yml": "k: 1\n" };
    const { roster } = imported("a1\n[web]\nb1\n", { beside });
    expect([...roster.nodes.values()].map(({ vars: own }) => own)).to.deep.equal([{ k: 1 }, {}]);
    expect(imported("a1\n").roster.nodes.get("a1")?.groups).to.deep.equal([]);
  });

  it("O13: reads values in sections of variables as Python's literals", () => {
    const values: Record<string, unknown> = {
      [String.raw`"a\tb\x41\u00e9\\"`]: "a\tbAé\\",
      [String.raw`'it\'s'`]: "it's",
      [String.raw`r'\d'`]: String.raw`\d`,
      "[u'a', U'\\x41']": ["a", "A"],
      "(1, 'a')": [1, "a"],
      "1, 2": [1, 2],
      "['a\"b', True, None,]": ['a"b', true, null],
      "{'k': [1.5, -2], 3: {}}": { k: [1.5, -2], 3: {} },
      ".5": 0.5,
      "00": 0,
      true: "true",
    };
    const texts = ["0644", "1 + 1", "[1, 2", "[a, b]", "{1: [], []: 1}", "12345678901234567890", "1.2.3", "a, b"];
    for (const text of [...texts, "[null]", "[,]", "[-]", "{'a':}", ",", "'open"]) values[text] = text;
    for (const [written, value] of Object.entries(values))
      expect(vars(`[web]\nweb1\n[web:vars]\nx = ${written}\n`), written).to.deep.equal({ x: value });
  });

  it("O13: takes texts that Ansible must not render, and no part of a value that is encrypted", () => {
    const text =
      "web:\n  hosts:\n    web1:\n      a: !unsafe '{# x #}'\n      b: { p: !vault '$ANSIBLE_VAULT;1.1;AES256 61' }\n";
    const hostvars = { a: { __ansible_unsafe: "{# x #}" }, b: { p: { __ansible_vault: "$ANSIBLE_VAULT" } } };
    for (const answer of [undefined, { _meta: { hostvars: { web1: hostvars } }, web: { hosts: ["web1"] } }]) {
      const { roster, leftOut } = imported(text, answer && { answer });
      expect(roster.nodes.get("web1")?.vars).to.deep.equal({ a: "{# x #}" });
      expect(leftOut).to.include("5 b: it is encrypted by Ansible Vault");
    }
  });

  it("O13: asks Ansible where it is there, takes its values, and says which", () => {
    const web1 = { k: 1, same: 2, map: { a: 1, b: 2 }, secret: { __ansible_vault: "x" } };
    const answer = { _meta: { hostvars: { web1, web2: { k: 3 } } }, web: { hosts: ["web1", "web2"] } };
    const { roster, leftOut } = imported('[web]\nweb1 k=one same=2 map=\'{"b": 2, "a": 1}\'\n', { answer });
    expect(roster.nodes.get("web1")?.vars).to.deep.equal({ k: 1, same: 2, map: { b: 2, a: 1 } });
    expect(roster.nodes.get("web2")).to.deep.include({ address: "web2", groups: ["web"], vars: { k: 3 } });
    expect(leftOut).to.include("2 k of web1: ansible-inventory reads it otherwise; its values are taken");
    expect(leftOut).to.include(
      "ansible-inventory:1 the host web2: only ansible-inventory lists it; it is imported as listed there",
    );
  });

  it("O12: a login that cannot be carried over is an error, and --user takes its place", () => {
    const text = "[web]\nweb1 ansible_user='a b'\n[db]\ndb1\n[db:vars]\nansible_user={{ lookup('env', 'USER') }}\n";
    const problems = problemsIn(() => imported(text));
    expect(problems).to.have.lengthOf(2);
    expect(problems[0]).to.include("given:2:").and.include("not “a b”").and.include("--user NAME");
    expect(problems[1]).to.include("given:6:").and.include("it is an expression of Jinja");
    const { roster } = imported(text, { user: "ops" });
    expect([roster.nodes.get("web1")?.user, roster.nodes.get("db1")?.user]).to.deep.equal(["ops", "ops"]);
  });

  it("O12: takes the logins of directories", () => {
    const names = ["ada@corp.example", "CORP\\\\ada", "john.doe", "'007'"];
    const { roster } = imported(
      `[web]\n${names.map((name, index) => `web${index} ansible_user=${name}`).join("\n")}\n`,
    );
    expect([...roster.nodes.values()].map(({ user }) => user)).to.deep.equal([
      "ada@corp.example",
      "CORP\\ada",
      "john.doe",
      "007",
    ]);
  });
});
