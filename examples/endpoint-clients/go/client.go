// Follows one key of the local endpoint: go run client.go 127.0.0.1:7070 app.yaml
package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

func ask(method, path, body string) *http.Response {
	request, _ := http.NewRequest(method, "http://"+os.Args[1]+path, strings.NewReader(body))
	answer, err := http.DefaultClient.Do(request)
	if err != nil || answer.StatusCode != 200 {
		panic(fmt.Sprint(path, " ", err, " ", answer))
	}
	return answer
}

func follow() {
	defer func() { fmt.Fprintln(os.Stderr, "the endpoint is away:", recover()) }()
	for lines := bufio.NewScanner(ask("GET", "/v1/events", "").Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "data:") { // What is there comes first, then each change.
			answer := ask("GET", "/v1/config/"+os.Args[2], "")
			revision := strings.Trim(answer.Header.Get("ETag"), `"`)
			value, _ := io.ReadAll(answer.Body)
			fmt.Println(revision, strings.TrimSpace(string(value))) // A program loads it here.
			ask("POST", "/v1/ack", fmt.Sprintf(`{"revision": %q, "ok": true}`, revision)).Body.Close()
		}
	}
}
func main() {
	for ; ; time.Sleep(time.Second) {
		follow()
	}
}
