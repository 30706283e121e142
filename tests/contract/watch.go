// What fsnotify sees of a volume: watch PATH KEY
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"
)

var last string

func read(key string) {
	content, err := os.ReadFile(key)
	text := strings.TrimSpace(string(content))
	if err != nil {
		fmt.Println("again", err)
	} else if text != last {
		fmt.Println("content", text)
		last = text
	}
}

func main() {
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		err = watcher.Add(os.Args[1])
	}
	if err != nil {
		panic(err)
	}
	fmt.Println("ready")
	read(os.Args[2])
	for {
		select {
		case event := <-watcher.Events:
			fmt.Println("event", event.Op, filepath.Base(event.Name))
			read(os.Args[2])
		case err := <-watcher.Errors:
			fmt.Println("error", err)
		}
	}
}
