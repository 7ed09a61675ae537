import { Argument, Command } from "commander";

/** `kcore completion SHELL`. */
export function completionCommand(): Command {
  return new Command("completion")
    .description("Print what lets your shell complete kcore's words: commands, flags, nodes of the roster, contexts")
    .addArgument(new Argument("<shell>").choices(shells))
    .addHelpText(
      "after",
      `
Examples:
  source <(kcore completion bash)                                        in ~/.bashrc
  source <(kcore completion zsh)                                         in ~/.zshrc, after compinit
  kcore completion fish > ~/.config/fish/completions/kcore.fish`,
    )
    .action((shell: Shell) => {
      process.stdout.write(completionScripts[shell]);
    });
}

const shells = ["bash", "zsh", "fish"] as const;
type Shell = (typeof shells)[number];

// Each script asks `kcore completion candidates -- WORDS…` for lines `VALUE<TAB>DESCRIPTION`; the line `:files` means that
// names of files fit, too. The shells only filter and draw.

const bash = `# bash completion of kcore; in ~/.bashrc: source <(kcore completion bash)
_kcore() {
  local line=\${COMP_LINE:0:COMP_POINT} words candidate before= IFS=$' \\t\\n'
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  # bash ends words at “:” and “=”, and replaces only the part behind the last one.
  local current=\${words[-1]} own=\${COMP_WORDS[COMP_CWORD]}
  [[ $own == [:=] ]] && own=
  [[ $current == *"$own" ]] && before=\${current%"$own"}
  COMPREPLY=()
  while IFS=$'\\t' read -r candidate _; do
    if [[ $candidate == :files ]]; then
      while IFS= read -r candidate; do COMPREPLY+=("$candidate"); done < <(compgen -f -- "$own")
      compopt -o filenames 2>/dev/null
    elif [[ $candidate == "$current"* ]]; then
      COMPREPLY+=("\${candidate#"$before"}")
      [[ $candidate == *: ]] && compopt -o nospace 2>/dev/null
    fi
  done < <("\${words[0]}" completion candidates -- "\${words[@]:1}" 2>/dev/null)
}
complete -F _kcore kcore
`;

const zsh = `#compdef kcore
# zsh completion of kcore; in ~/.zshrc: source <(kcore completion zsh)
_kcore() {
  local -a lines described
  local value description line
  lines=("\${(@f)$("\${words[1]}" completion candidates -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  for line in $lines; do
    if [[ $line == :files ]]; then
      _files
      continue
    fi
    value=\${line%%$'\\t'*}
    description=\${line#*$'\\t'}
    [[ -n $value ]] && described+=("\${value//:/\\\\:}\${description:+:$description}")
  done
  (( $#described )) && _describe -t kcore kcore described
}
if [[ \${funcstack[1]} == _kcore ]]; then _kcore "$@"; else compdef _kcore kcore; fi
`;

const fish = `# fish completion of kcore: kcore completion fish > ~/.config/fish/completions/kcore.fish
function __kcore_candidates
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] completion candidates -- $words[2..] 2>/dev/null)
        if test "$line" = :files
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
complete -c kcore -f -a '(__kcore_candidates)'
`;

/** For each shell, the script by which it completes kcore's words. */
const completionScripts: Readonly<Record<Shell, string>> = { bash, zsh, fish };
