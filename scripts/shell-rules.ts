/** Rules of shellcheck whose findings are no mistakes here, each with its reason. */
export const leftOut: ReadonlyMap<string, string> = new Map([
  ["SC1007", "`a= b=` empties variables; nothing is meant to be assigned"],
  ["SC1003", "a back slash in quotes is meant as it stands"],
  ["SC1090", "segments are there at run time only"],
  ["SC1091", "as SC1090"],
  ["SC1111", "our messages use typographic quotes"],
  ["SC2015", "`a && b || c` is written where c shall follow the failure of either"],
  ["SC2016", "texts for another shell or awk are quoted so that this one leaves them alone"],
  [
    "SC2018",
    "steps run with LC_ALL=C, where a-z are the ASCII letters, and not every build of BusyBox's tr has classes",
  ],
  ["SC2019", "as SC2018"],
  ["SC2034", "the variables of a text are read by the text that follows it, or take a field that is not wanted"],
  ["SC2043", "a list of an argument has one word in a sample"],
  ["SC2140", "what stands between two quoted parts is an argument's value, quoted where it needs it"],
  ["SC2154", "variables come from the runner, the library or the text before"],
  ["SC2157", "an argument's value is constant in a sample"],
  ["SC2194", "as SC2157"],
  ["SC2209", "`kind=file`, `unit=a`: words that happen to be commands"],
]);

/** Rules that allow their finding in lines of this form only. */
export const allowedLines: readonly { readonly code: string; readonly line: RegExp; readonly why: string }[] = [
  { code: "SC1010", line: /fact reboot done/, why: "the fact's value is the word done" },
  { code: "SC1097", line: /IFS== read/, why: "IFS is the equals sign" },
  { code: "SC2005", line: /\$\(echo \$/, why: "makes one line of words" },
  { code: "SC2012", line: /ls -l .*\/proc\//, why: "names under /proc are numbers" },
  { code: "SC2012", line: /ls -A "\$1" \| wc -c/, why: "only whether there is something is asked" },
  { code: "SC2045", line: /ls -t "\$K_STATE\/runs"/, why: "names of runs are ours, and the oldest come last" },
  { code: "SC2046", line: /\$\(echo \$|set -- \$\(|rm -f \$\(sed /, why: "the words of a line, or of each" },
  { code: "SC2086", line: /set -- .*\$|\$\(echo \$|printf '%s\\n' \$flags|dd \$k_size/, why: "the words of a line" },
  {
    code: "SC2086",
    line: /\bk_(?:need|ask|gather_evidence|check_links|add_evidence|holds|want) .*\$|\$k_(?:more|moresums) 2>|\$k_provable$/,
    why: "lists of keys, hashes and paths of plain characters (compile-step.ts, batch.ts)",
  },
  {
    code: "SC2086",
    line: /\bb_(?:inspect|read_links|wave) \$|\$b_(?:paths|sums|above|fresh|asides|word)\b|sync \$b_|b_is_safe "\$1"/,
    why: "lists of numbers and paths of plain characters (batch.ts)",
  },
  {
    code: "SC2086",
    line: /import \$imports |--verify-path \$valid /,
    why: "lists of hashes and of store paths (nix-profile.ts)",
  },
  { code: "SC2086", line: /s_\w+ .*\$s_devices$/, why: "a list of devices" },
  {
    code: "SC2086",
    line: / (?:install|remove|purge|add|del|info)(?: --best| -u| --)* \$due/,
    why: "a list of packages' names",
  },
  { code: "SC2086", line: /mdadm --(?:assemble|create) .* \$(?:ours|all) /, why: "a list of devices" },
  {
    code: "SC2086",
    line: /zpool (?:create .* \$vdev_words|"\$verb" \$words) /,
    why: "a list of devices and options of ours",
  },
  { code: "SC2086", line: /-i "\$nix" \$cacert/, why: "one path or none, both of the store" },
  { code: "SC2100", line: /daemon_unit=nix-daemon/, why: "a name, no sum" },
  { code: "SC2116", line: /\$\(echo \$/, why: "makes one line of words" },
  {
    code: "SC2317",
    line: /configuration=absent; elif |^\s*has\(\) \{ printf /,
    why: "called by each_file, and behind a fact() that ends its own subshell only where something differs",
  },
  { code: "SC2153", line: /K_TMP|K_LIB/, why: "these are given; k_tmp and k_lib are others" },
];
