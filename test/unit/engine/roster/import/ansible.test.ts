import { expect } from "chai";
import { imported } from "#support/imported.ts";
import { problemsIn } from "#support/problems.ts";

const hint =
  "install ansible-core, or import what it prints elsewhere: ansible-inventory -i FILE --list | kcore roster import --from ansible -";
const list = (groups: object, hostvars: object = {}): string => JSON.stringify({ _meta: { hostvars }, ...groups });

describe("the import of an Ansible inventory", () => {
  it("converts hosts, ports, jump hosts, variables and nested groups, of which the deepest wins", () => {
    const { roster, formats, ownReader } = imported(
      list(
        {
          all: { children: ["site", "ungrouped"], vars: { ansible_ssh_private_key_file: "~/.ssh/fleet" } },
          site: {
            children: ["web", "db"],
            vars: {
              ansible_ssh_common_args: "-o ProxyJump=ops@gw.example.net:2200 -o StrictHostKeyChecking=no",
              a: [1],
            },
          },
          web: { hosts: ["web1"] },
          db: { hosts: ["db1", "db2"] },
          ungrouped: { hosts: ["lone"] },
        },
        {
          web1: { ansible_user: "deploy", http_port: 80 },
          db1: { ansible_host: "192.0.2.9", ansible_become: "yes" },
          db2: { ansible_host: "192.0.2.9" },
          lone: { ansible_port: "2222", ansible_connection: "local", note: null },
        },
      ),
    );
    expect([formats, ownReader]).to.deep.equal([["ansible"], []]);
    expect([...roster.nodes.keys()]).to.have.members(["lone", "web1", "db1"]);
    expect(roster.nodes.get("web1")).to.deep.include({
      address: "web1",
      user: "deploy",
      groups: ["site", "web"],
      identityFile: "/home/op/.ssh/fleet",
      jump: ["gw.example.net"],
      vars: { a: [1], http_port: 80 },
    });
    expect(roster.nodes.get("lone")).to.deep.include({
      port: 2222,
      transport: "local",
      groups: [],
      vars: { note: null },
    });
    expect(roster.jumps.get("gw.example.net")).to.include({ address: "gw.example.net", user: "ops", port: 2200 });
    expect(roster.nodes.get("db1")).to.deep.include({ address: "192.0.2.9", jump: ["gw.example.net"] });
  });

  it("reports each omitted value with its line, and never shows a password", () => {
    const given = `[app]
a1 ansible_host=192.0.2.1 ansible_password=Top5ecret ansible_user=op
a2 ansible_host=192.0.2.2 ansible_connection=winrm
a3 ansible_host=192.0.2.3 ansible_become_method=su ansible_become=true
a4 ansible_host="{{ lookup('env', 'A4') }}"
[app:vars]
ansible_python_interpreter=/usr/bin/python3
ansible_become_user=app
api_token=Top5ecret
url=http://{{ inventory_hostname }}/
`;
    const vars = {
      ansible_python_interpreter: "/usr/bin/python3",
      ansible_become_user: "app",
      api_token: "Top5ecret",
      url: "http://{{ inventory_hostname }}/",
    };
    const hostvars = {
      a1: { ansible_host: "192.0.2.1", ansible_password: "Top5ecret", ansible_user: "op" },
      a2: { ansible_host: "192.0.2.2", ansible_connection: "winrm" },
      a3: { ansible_host: "192.0.2.3", ansible_become_method: "su", ansible_become: "true" },
      a4: { ansible_host: "{{ lookup('env', 'A4') }}" },
    };
    const layers = { _meta: { hostvars }, app: { hosts: Object.keys(hostvars), vars } };
    const values = {
      _meta: {
        hostvars: Object.fromEntries(Object.entries(hostvars).map(([host, own]) => [host, { ...vars, ...own }])),
      },
    };
    const { leftOut, text } = imported(given, { answer: { layers, values } });
    expect(leftOut).to.deep.equal([
      "2 ansible_password: a password in the inventory; kcore roster trust --deploy-key puts a key there by it",
      "3 the host a2: it is reached by the connection plugin “winrm”, and kcore speaks SSH",
      "4 ansible_become_method=su: kcore becomes root by sudo alone",
      "4 the user of a3: none is named: there it is your own name, here root; defaults: { user: … } says another",
      "5 ansible_host: it is an expression of Jinja",
      "5 the node a4: it has no address that can be used",
      "7 ansible_python_interpreter: kcore needs no interpreter on nodes",
      "8 ansible_become_user=app: kcore works as root; a step's runAs names another user",
      "9 api_token: it looks like a secret, and a roster holds none: a state's parameter may refer to one",
      "10 url: an expression of Jinja; states have {{…}} of their own (docs/templates.md)",
    ]);
    expect(`${text}${leftOut.join("\n")}`).not.to.contain("Top5ecret");
  });

  it("gives a host the value of Ansible's precedence, where its group has another", () => {
    const layers = {
      web: { hosts: ["web1", "web2"], vars: { k: "group", same: 1 } },
      _meta: { hostvars: { web1: { own: 1 } } },
    };
    const values = { _meta: { hostvars: { web1: { k: "all", same: 1, own: 1 }, web2: { k: "group", same: 1 } } } };
    const { text } = imported("[web]\nweb1\n", { answer: { layers, values } });
    expect(text).to.contain("    vars: { k: group, same: 1 }").and.contain("    vars: { own: 1, k: all }");
  });

  it("takes texts marked unsafe literally, and omits values encrypted by Ansible Vault", () => {
    const secret = { __ansible_vault: "$ANSIBLE_VAULT;1.1;AES256 61" };
    const hostvars = { web1: { a: { __ansible_unsafe: "{# x #}" }, b: { p: secret }, ansible_port: secret } };
    const { roster, leftOut } = imported(list({ web: { hosts: ["web1"] } }, hostvars));
    expect(roster.nodes.get("web1")).to.deep.include({ port: 22, vars: { a: "{# x #}" } });
    expect(leftOut).to.include("1 b: it is encrypted by Ansible Vault");
    expect(leftOut).to.include("1 ansible_port: it is encrypted by Ansible Vault");
  });

  it("accepts cyclic groups and the name constructor, and gives no jump host itself as jump host", () => {
    const circle = { a: { children: ["b"] }, b: { children: ["a"], hosts: ["n1"] }, constructor: ["n1", "gw"] };
    const hostvars = { n1: { constructor: 1, ansible_user: "x" }, gw: { ansible_user: "x" } };
    const all = { all: { vars: { ansible_ssh_common_args: "-J gw" } } };
    const { roster, leftOut } = imported(list({ ...circle, ...all }, hostvars));
    expect(roster.nodes.get("n1")).to.deep.include({ groups: ["a", "b"], jump: ["gw"] });
    expect(roster.nodes.get("gw")?.jump).to.deep.equal([]);
    expect(leftOut).to.deep.equal([
      "1 constructor: its value cannot stand in a roster",
      "1 the group “constructor”: a name is 1 to 63 letters, digits, “.”, “_” or “-”",
    ]);
  });

  it("refuses a user name that a roster cannot have, unless --user replaces it", () => {
    const hostvars = { web1: { ansible_user: "a b" }, db1: { ansible_user: "{{ lookup('env', 'USER') }}" } };
    const text = list({ web: { hosts: ["web1", "db1"] } }, hostvars);
    const problems = problemsIn(() => imported(text));
    expect(problems).to.have.lengthOf(2);
    expect(problems[0]).to.include("given:1:").and.include("not “a b”").and.include("--user NAME");
    expect(problems[1]).to.include("it is an expression of Jinja");
    const { roster } = imported(text, { user: "ops" });
    expect([roster.nodes.get("web1")?.user, roster.nodes.get("db1")?.user]).to.deep.equal(["ops", "ops"]);
  });
});

describe("kcore's own reader of inventories", () => {
  it("reads plain hosts, groups and values, and reports that Ansible is missing", () => {
    const { roster, ownReader } = imported(
      "# the fleet\nlone\n\n[web]\nweb1 ansible_user=deploy http_port=80 on=True\n[web:vars]\nansible_host = 192.0.2.9\nkey=~/.ssh/x\n",
    );
    expect(ownReader).to.deep.equal([{ file: "given", missing: "ansible-inventory" }]);
    expect([...roster.nodes.keys()]).to.deep.equal(["lone", "web1"]);
    const vars = { key: "/home/op/.ssh/x", http_port: 80, on: true };
    expect(roster.nodes.get("web1")).to.deep.include({
      user: "deploy",
      groups: ["web"],
      vars: { ...vars, key: "~/.ssh/x" },
    });
  });

  it("refuses each line that Ansible may read differently, without showing it", () => {
    const lines = [
      "n[1:3]",
      "n1:2222",
      "n1 a='b c'",
      "n1 a=0644",
      "n1 a={{b}}",
      "n1 word",
      "[a:children]",
      "n1 a=None",
      "n1 a=b#c",
    ];
    expect(problemsIn(() => imported(`[web]\n${lines.join("\n")}\n[web:vars]\nk=Top5ecret secret\n`))).to.deep.equal(
      [2, 3, 4, 5, 6, 7, 8, 9, 10, 12].map(
        (line) => `given:${line}:1+1 this line cannot be read with certainty without Ansible [ROSTER_IMPORT] | ${hint}`,
      ),
    );
    expect(problemsIn(() => imported("all: { hosts: { a: } }\n"))[0]).to.contain("without Ansible");
  });

  it("refuses group_vars and host_vars", () =>
    expect(problemsIn(() => imported("[web]\nn1\n", { hasVariables: true }))).to.deep.equal([
      `given has group_vars or host_vars beside it, which only Ansible reads [ROSTER_IMPORT] | ${hint}`,
    ]));
});
