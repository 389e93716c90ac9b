# Completion of kubectl-nacre for fish. For `kubectl nacre`: kubectl nacre completion kubectl

function __kubectl_nacre_complete
    set -l words (commandline --tokenize --cut-at-cursor --current-process) (commandline --current-token --cut-at-cursor)
    set -l answer (kubectl-nacre __complete -- $words[2..-1] 2>/dev/null)
    test (count $answer) -gt 0; or return
    if test "$answer[-1]" = ":0"
        __fish_complete_path (commandline --current-token)
    else
        string join \n -- $answer[1..-2]
    end
end

complete --command kubectl-nacre --no-files --arguments '(__kubectl_nacre_complete)'
