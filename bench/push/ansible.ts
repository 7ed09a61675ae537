import { join } from "node:path";
import { contentOf, isMade } from "#support/workload.ts";
import { placesOf, renew, sshOptions, type Contender, type Scene } from "./scene.ts";

/** Where Debian's package of Mitogen has its strategies. */
export const strategies = "/usr/lib/python3/dist-packages/ansible_mitogen/plugins/strategy";

/** Ansible tuned: pipelining, kept connections, as many forks as nodes, no facts; or with Mitogen's strategy besides. */
export function ansibleContender(scene: Scene, { mitogen = false } = {}): Contender {
  const { targets, nodes } = scene;
  const name = mitogen ? "mitogen" : "ansible";
  const [folder, base] = placesOf(scene, name);
  const hosts = nodes.map(({ name: node, address, port }) => `${node} ansible_host=${address} ansible_port=${port}\n`);
  const settings = [
    `[defaults]`,
    `inventory = ${folder}/hosts`,
    `forks = ${nodes.length}`,
    `gathering = explicit`,
    `host_key_checking = True`,
    `retry_files_enabled = False`,
    ...(mitogen ? [`strategy_plugins = ${strategies}`, `strategy = mitogen_linear`] : []),
    `[ssh_connection]`,
    `pipelining = True`,
    `ssh_args = ${sshOptions(targets, folder).join(" ")} -o ControlMaster=auto -o ControlPersist=60s`,
    `control_path_dir = ${folder}/cp`,
  ];
  return {
    name,
    base,
    reset() {
      renew(folder, base, scene, {
        hosts: `[all]\n${hosts.join("")}[all:vars]\nansible_user=root\nansible_python_interpreter=/usr/bin/python3\nansible_ssh_private_key_file=${targets.identityFile}\n`,
        known_hosts: `target ${targets.hostKey}\n`,
        "ansible.cfg": `${settings.join("\n")}\n`,
        "play.yaml": playbook(scene, base),
        ...Object.fromEntries(
          scene.work.files.map((file, at) => [`templates/f${at}.j2`, contentOf(file, "{{ inventory_hostname }}")]),
        ),
      });
    },
    command: {
      words: ["/usr/bin/ansible-playbook", join(folder, "play.yaml")],
      cwd: folder,
      env: { ANSIBLE_CONFIG: join(folder, "ansible.cfg"), ANSIBLE_NOCOLOR: "1", HOME: folder },
    },
    changed(stdout) {
      const lines = [...stdout.matchAll(/^t\d+ +: ok=\d+ +changed=(\d+) +unreachable=0 +failed=0 /gm)];
      if (lines.length !== nodes.length) throw new Error(`${name}: ${lines.length} of ${nodes.length} nodes are done`);
      return lines.reduce((sum, [, changed]) => sum + Number(changed), 0);
    },
  };
}

function playbook({ work }: Scene, base: string): string {
  const here = `${base}/{{ inventory_hostname }}`;
  const tasks = [
    ...(work.packages.length > 0 ? [`apt: { name: [${work.packages.join(", ")}] }`] : []),
    ...work.directories.map(({ path, mode }) => `file: { path: "${here}/${path}", state: directory, mode: "${mode}" }`),
    ...work.files.map(({ path, mode }, at) => `template: { src: f${at}.j2, dest: "${here}/${path}", mode: "${mode}" }`),
    ...work.links.map(({ path, target }) => `file: { path: "${here}/${path}", src: "${target}", state: link }`),
    ...work.commands.map(({ path, guard }) =>
      guard === "creates"
        ? `shell: { cmd: "echo made >${here}/${path}", creates: "${here}/${path}" }`
        : // Ansible has no guard by a command.
          `shell: "${isMade(`${here}/${path}`)} || { echo made >${here}/${path}; echo changed; }"\n      register: made\n      changed_when: made.stdout == 'changed'`,
    ),
  ];
  return `- hosts: all\n  gather_facts: false\n  tasks:\n${tasks.map((task, at) => `    - name: step ${at}\n      ${task}\n`).join("")}`;
}
